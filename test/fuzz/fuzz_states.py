#!/usr/bin/python3
"""Mutated states, sums and models, in binary form, and sums as text; beside a throw-away server:

    scripts/with-postgres test/fuzz/fuzz_states.py [--seconds 600 | --cases 2000] [--seed 1]

States of the aggregates kmeans and gmm go to their deserialization function, as some distributed planners let
any role do; kmeans_sums, pca_sums and models are received as from a client (COPY in binary form) and used;
models are made by hand, too. Fails when the connection is lost (a crash), when an error has an SQLSTATE that
bad input does not give (XX000 above all), or when what was accepted has a wrong size. Prints the statement
that did it; the same seed repeats the same statements. Needs psql.
"""
import argparse
import os
import random
import struct
import sys
import tempfile
import time

from common import Session

# Of the binary forms: 22P03, of records and arrays 08P01, 42804, 2202E and 54000, of text in them 22021.
# Of what is done with what came through: as the reference says; 0A000 of weights where sizes have bounds.
ALLOWED = {"22P03", "08P01", "42804", "2202E", "54000", "22021", "22023", "22003", "22004", "57014", "0A000"}

SETUP = r"""
CREATE EXTENSION IF NOT EXISTS pg_kmeans;
SET client_min_messages = error;
SET statement_timeout = '300ms';
CREATE AGGREGATE pg_temp.state_of(real[], bigint) (SFUNC = pgkm_transition, STYPE = internal, FINALFUNC = pgkm_serialize);
CREATE AGGREGATE pg_temp.state_of(float8[], bigint, kmeans_options, float8) (SFUNC = pgkm_transition, STYPE = internal, FINALFUNC = pgkm_serialize);
CREATE AGGREGATE pg_temp.state_of(float8[], bigint, gmm_options) (SFUNC = pgkm_gmm_transition, STYPE = internal, FINALFUNC = pgkm_serialize);
CREATE OR REPLACE FUNCTION raw_deserialize(bytea) RETURNS bigint AS '$libdir/pg_kmeans', 'pgkm_aggregate_deserialize' LANGUAGE C STRICT;
CREATE FUNCTION pg_temp.raw_combine(bigint, bigint) RETURNS bigint AS '$libdir/pg_kmeans', 'pgkm_aggregate_combine' LANGUAGE C;
CREATE FUNCTION pg_temp.raw_kmeans(bigint) RETURNS kmeans_model AS '$libdir/pg_kmeans', 'pgkm_aggregate_final' LANGUAGE C;
CREATE FUNCTION pg_temp.raw_gmm(bigint) RETURNS gmm_model AS '$libdir/pg_kmeans', 'pgkm_gmm_final' LANGUAGE C;
CREATE AGGREGATE pg_temp.feed_kmeans(bigint) (SFUNC = pg_temp.raw_combine, STYPE = bigint, FINALFUNC = pg_temp.raw_kmeans);
CREATE AGGREGATE pg_temp.feed_gmm(bigint) (SFUNC = pg_temp.raw_combine, STYPE = bigint, FINALFUNC = pg_temp.raw_gmm);
CREATE TEMP TABLE r AS SELECT i, ARRAY[i % 7, i * i % 11, i % 3]::float8[] AS f, (1 + i % 2)::float8 AS w FROM generate_series(1, 9) AS i;
CREATE TEMP TABLE kmeans_sums_in (v kmeans_sums);
CREATE TEMP TABLE kmeans_model_in (v kmeans_model); CREATE TEMP TABLE gmm_model_in (v gmm_model); CREATE TEMP TABLE pca_model_in (v pca_model);
"""

KINDS = ["full", "tied", "diag", "spherical"]
# A model without the options of its origin: the server itself answers XX000 to a jsonb of another version.
PLAIN = ("ROW((m).k, (m).d, (m).centroids, (m).size, (m).within_ss, (m).inertia, (m).n_iter, (m).converged, (m).n, (m).metric, (m).seed, (m).center, (m).scale, "
         "ROW('{a,b,c}'::text[], 'r', NULL, NULL, ((m).origin).means, ((m).origin).deviations, NULL)::kmeans_origin, (m).fills, (m).mass)::kmeans_model")
ORIGIN = "ROW('{a,b,c}'::text[], 'r', NULL, NULL, NULL, NULL, NULL)::kmeans_origin"
PLAIN_GMM = ("ROW((m).k, (m).d, (m).covariance_type, (m).weights, (m).means, (m).covariances, (m).log_likelihood, (m).trace, (m).n_iter, (m).converged, "
             f"(m).aic, (m).bic, (m).n, (m).seed, (m).center, (m).scale, (m).fills, {ORIGIN}, (m).mass)::gmm_model")
PLAIN_PCA = ("ROW((m).n_components, (m).d, (m).mean, (m).scale, (m).components, (m).explained_variance, (m).explained_variance_ratio, (m).singular_values, "
             f"(m).n, (m).whiten, (m).fills, {ORIGIN})::pca_model")
# Valid values of each kind, as bytes.
CORPUS = {
    "state": ["pg_temp.state_of(f::real[], 2) FROM r", "pg_temp.state_of(f, 2, kmeans_options(seed => 3), w) FROM r",
              "pg_temp.state_of(f, 2, kmeans_options(init_centroids => '{{1,2,3},{4,5,6}}', standardize => true), w) FROM r",
              "pg_temp.state_of(f, 2, gmm_options('diag')) FROM r",
              "pg_temp.state_of(f, 2, gmm_options(weights_init => '{0.5,0.5}', means_init => '{{1,2,3},{4,5,6}}', reg_covar => 0.1)) FROM r"],
    "step_state": ["pgkm_merge_accum(NULL, kmeans_step(f, '{{1,2,3},{4,5,6}}', w)) FROM r", "pgkm_merge_accum(NULL, kmeans_step(f, '{{1,2,3}}')) FROM r"],
    "pca_state": ["pgkm_pca_accum(NULL, f, pca_options(2, true, true)) FROM r LIMIT 1",
                  "pgkm_pca_combine(pgkm_pca_accum(NULL, '{1,2}'::real[]), pgkm_pca_accum(NULL, '{4,2}'::real[]))"],
    "kmeans_sums": ["record_send(kmeans_step(f, '{{1,2,3},{4,5,6}}', w)) FROM r", "record_send(kmeans_step(f, '{{1,2,3}}')) FROM r"],
    "kmeans_model": [f"record_send({PLAIN}) FROM (SELECT {call} AS m FROM r) AS s"
                     for call in ("kmeans(f, 3)", "kmeans(f, 2, kmeans_options(standardize => true, metric => 'cosine'))")],
    "gmm_model": [f"record_send({PLAIN_GMM}) FROM (SELECT gmm(f, 2, gmm_options('{kind}', reg_covar => 0.1)) AS m FROM r) AS s" for kind in KINDS],
    "pca_model": [f"record_send({PLAIN_PCA}) FROM (SELECT {call} AS m FROM r) AS s" for call in ("pca(f)", "pca(f, pca_options(2, true, true))")],
}

# What is done with a value that came through; one row of booleans, all to be true.
USES = {
    "kmeans_sums": "SELECT cardinality(kmeans_sums_masses(v)) = (v).k, cardinality(kmeans_sums_centroids(v)) = cardinality(kmeans_sums_features(v)), "
                   "v::text::kmeans_sums = v, (kmeans_merge(v)).masses = (v + v).masses IS NOT NULL FROM kmeans_sums_in GROUP BY v",
    "kmeans_model": "SELECT kmeans_predict(v, x) BETWEEN 0 AND (v).k - 1, kmeans_distance(v, x) >= 0, array_length(kmeans_transform(v, x), 1) = (v).k, "
                    "(SELECT count(*) = (v).k AND min(array_length(centroid, 1)) = (v).d FROM kmeans_centroids(v)), "
                    "(SELECT count(*) = (v).k * (v).d FROM kmeans_profile(v)), kmeans_profile_plot(v) LIKE '%</svg>%', "
                    "(SELECT count(*) = (v).k AND count(new_id) = count(old_id) FROM kmeans_match(v, v)) FROM {source}",
    "gmm_model": "SELECT gmm_predict(v, x) BETWEEN 0 AND (v).k - 1, gmm_score(v, x) < 'Infinity', array_length(gmm_posterior(v, x), 1) = (v).k, "
                 "(SELECT count(*) = (v).k AND min(array_length(mean, 1)) = (v).d FROM gmm_components(v)), "
                 "(SELECT array_dims((gmm_update(g, r, 2, 0.5)).means) = format('[1:%s][1:%s]', (v).k, (v).d) FROM (SELECT v AS g, x AS r) AS one) FROM {source}",
    "pca_model": "SELECT array_length(pca_transform(v, x), 1) = (v).n_components, array_length(pca_inverse_transform(v, y), 1) = (v).d, "
                 "(SELECT count(*) = (v).n_components AND min(array_length(component, 1)) = (v).d FROM pca_components(v)) FROM {source}",
}
# The same of states that are bytes.
BYTE_USES = {
    "step_state": "SELECT (s).k = cardinality((s).masses), array_dims((s).features) = format('[1:%s][1:%s]', (s).k, (s).d) "
                  "FROM (SELECT pgkm_step_final(pgkm_step_combine(b, b)) AS s FROM (SELECT {value} AS b) AS v OFFSET 0) AS t",
    "pca_state": "SELECT array_dims((m).components) = format('[1:%s][1:%s]', (m).n_components, (m).d) "
                 "FROM (SELECT pgkm_pca_final(pgkm_pca_combine(pgkm_pca_accum(b, '{{1,2,3}}'::real[], pca_options(2, true, true)), b)) AS m FROM (SELECT {value} AS b) AS v OFFSET 0) AS t",
}
SIZES = {"kmeans": "(m).k = array_length((m).size, 1) AND array_dims((m).centroids) = format('[1:%s][1:%s]', (m).k, (m).d) AND (SELECT sum(s) FROM unnest((m).size) AS s) = (m).n",
         "gmm": "(m).k = array_length((m).weights, 1) AND array_dims((m).means) = format('[1:%s][1:%s]', (m).k, (m).d)"}

WORDS = [0, 1, 2, 3, 7, -1, -2, 255, 256, 65535, 65536, 2**31 - 1, -2**31, 2**30, 2**28 + 1]
LONGS = WORDS + [2**32, 2**53 + 1, 2**61, 2**62 + 1, 2**63 - 1, -2**63, -2**32]
NUMBERS = ["NaN", "Infinity", "-Infinity", "0", "-0", "1e308", "-1e308", "5e-324", "1e160", "-3", "0.5"]


class States(Session):
    def run(self, *statements):
        """The lines of all, and the SQLSTATE of the first that failed or 00000. Raises when the server is gone."""
        all_lines, state = [], "00000"
        for statement in statements:
            lines, state = self.ask(statement)
            all_lines += lines
            if state != "00000":
                if state.startswith("08") and self.ask("SELECT 'alive'") != (["alive"], "00000"):
                    raise ConnectionError("the connection is lost")
                break
        return all_lines, state


def mutate(dice, value, others):
    value = bytearray(value)
    for _ in range(dice.choice([1, 1, 1, 2, 5])):
        at = dice.randrange(len(value)) if value else 0
        form = dice.randrange(8)
        order = dice.choice("<>")
        if form == 0:
            value[at:at + 1] = bytes([dice.randrange(256)])
        elif form == 1:
            value[at:at + 1] = bytes([value[at] ^ 1 << dice.randrange(8)]) if value else b""
        elif form == 2:
            value[at // 4 * 4:at // 4 * 4 + 4] = struct.pack(order + "i", dice.choice(WORDS))
        elif form == 3:
            value[at // 4 * 4:at // 4 * 4 + 8] = struct.pack(order + "q", dice.choice(LONGS))
        elif form == 4:
            value[at // 4 * 4:at // 4 * 4 + 8] = struct.pack(order + "d", float(dice.choice(NUMBERS)))
        elif form == 5:
            del value[at:at + dice.choice([1, 4, 8, 1000])]
        elif form == 6:
            value[at:at] = value[at:at + dice.choice([1, 4, 8, 100])]
        else:
            value[at:] = dice.choice(others)[at:]
    return bytes(value)


def refit_length(dice, value):
    """A state says how long it is: mostly what changed shall get further than that."""
    if dice.random() < 0.9 and len(value) >= 16:
        return value[:8] + struct.pack("=q", len(value)) + value[16:]
    return value


def state_case(dice, corpus, _):
    value = refit_length(dice, mutate(dice, dice.choice(corpus["state"]), corpus["state"]))
    rows = [value] if dice.random() < 0.5 else dice.sample([value, dice.choice(corpus["state"])], 2)
    kind = dice.choice(["kmeans", "gmm"])
    values = ", ".join(f"('\\x{row.hex()}'::bytea)" for row in rows)
    return [f"SELECT {SIZES[kind]} FROM (SELECT pg_temp.feed_{kind}(raw_deserialize(b)) AS m FROM (VALUES {values}) AS v (b)) AS s"]


def row(dice, fewest=1):
    return "'{" + ",".join(dice.choice(["1", "2.5", "-7", dice.choice(NUMBERS)]) if dice.random() < 0.3 else "1" for _ in range(dice.choice([fewest, 2, 3, 3, 3, 3]))) + "}'::float8[]"


def received_case(dice, corpus, path):
    kind = dice.choice(list(USES))
    value = mutate(dice, dice.choice(corpus[kind]), corpus[kind])
    with open(path, "wb") as file:
        file.write(b"PGCOPY\n\xff\r\n\0" + struct.pack(">iihi", 0, 0, 1, len(value)) + value + struct.pack(">h", -1))
    source = f"{kind}_in, (SELECT {row(dice)} AS x, {row(dice)} AS y) AS rows"
    return [f"TRUNCATE {kind}_in", f"COPY {kind}_in FROM '{path}' (FORMAT binary)", USES[kind].format(bytes="\\x" + value.hex(), source=source)]


def bytes_case(dice, corpus, _):
    kind = dice.choice(list(BYTE_USES))
    value = mutate(dice, dice.choice(corpus[kind]), corpus[kind])
    return [BYTE_USES[kind].format(value=f"'\\x{value.hex()}'::bytea")]


def numbers(dice, *extents):
    if dice.random() < 0.03:
        return "NULL"
    def nested(extents):
        count = extents[0] if dice.random() < 0.97 else dice.choice([0, 1, 4])
        items = [nested(extents[1:]) if len(extents) > 1 else dice.choice(NUMBERS + ["NULL"]) if dice.random() < 0.02 else dice.choice(["1", "2", "0.25", "4"])
                 for _ in range(count)]
        return "{" + ",".join(items) + "}"
    return f"'{nested(extents)}'"


def made_case(dice, _corpus, _path):
    """A model by ROW(...), often nearly right."""
    kind = dice.choice(["kmeans_model", "gmm_model", "pca_model"])
    k, d = dice.choice([1, 2, 3]), dice.choice([2, 3])
    said_k, said_d = [dice.choice(["NULL", "0", "-1", "2147483647", "65536"]) if dice.random() < 0.05 else str(n) for n in (k, d)]
    scales = [numbers(dice, d), numbers(dice, d)] if dice.random() < 0.7 else ["NULL", "NULL"]
    fills = [numbers(dice, d) if dice.random() < 0.3 else dice.choice(["'{}'", "NULL"])]
    if kind == "kmeans_model":
        metric = dice.choice(["'l2'", "'cosine'", "'l1'", "NULL"] if dice.random() < 0.2 else ["'l2'", "'cosine'"])
        fields = [said_k, said_d, numbers(dice, k, d), numbers(dice, k).replace("0.25", "25"), numbers(dice, k), "1", "1", "true", "9", metric, "0"] + scales + ["NULL"] + fills + ["NULL"]
    elif kind == "gmm_model":
        shape = dice.choice(KINDS)
        extents = {"full": (k, d, d), "tied": (d, d), "diag": (k, d), "spherical": (k,)}[shape]
        fields = [said_k, said_d, f"'{shape}'", numbers(dice, k), numbers(dice, k, d), numbers(dice, *extents), "1", "NULL", "1", "true", "1", "1", "9", "0"] + scales + fills + ["NULL", dice.choice(["NULL", "0", "9", "-1", "'NaN'", "1e300"])]
    else:
        fields = [said_k, said_d, numbers(dice, d), numbers(dice, d) if dice.random() < 0.7 else "NULL", numbers(dice, k, d), numbers(dice, k), numbers(dice, k),
                  numbers(dice, k), "9", dice.choice(["true", "false", "NULL"])] + fills + ["NULL"]
    source = f"(SELECT ROW({', '.join(fields)})::{kind} AS v, {row(dice)} AS x, {row(dice)} AS y) AS made"
    return [USES[kind].format(source=source)]


def complaint(lines, state, case):
    """What is wrong with an answer, or None."""
    if state != "00000":
        # Numbers made by hand may be no numbers of their type: 22P02.
        more = {"22P02"} if case == made_case else set()
        return None if state in ALLOWED | more else f"SQLSTATE {state}"
    return None if set("|".join(lines).split("|")) <= {"t"} else f"wrong: {lines}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--cases", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    session, dice = States(), random.Random(arguments.seed)
    _, state = session.run(*SETUP.strip().replace("\n", " ").split("; "))
    assert state == "00000", state
    corpus = {}
    for kind, sources in CORPUS.items():
        answers = [session.run(f"SELECT {source}") for source in sources]
        assert all(state == "00000" for _, state in answers), answers
        corpus[kind] = [bytes.fromhex(lines[0][2:]) for lines, _ in answers]
    end = time.monotonic() + arguments.seconds if arguments.seconds else None
    counts = {}
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)  # the server reads it
        path = os.path.join(folder, "copy")
        while time.monotonic() < end if end else sum(counts.values()) < arguments.cases:
            case = dice.choice([state_case, received_case, made_case, bytes_case])
            statements = case(dice, corpus, path)
            try:
                lines, state = session.run(*statements)
                wrong = complaint(lines, state, case)
            except (ConnectionError, BrokenPipeError) as lost:
                wrong = lost
            if wrong is not None:
                print(f"FAILED: {wrong}\n" + ";\n".join(statements))
                sys.exit(1)
            counts[state] = counts.get(state, 0) + 1
    print(f"{sum(counts.values())} cases, 0 failures; " + ", ".join(f"{state}: {counts[state]}" for state in sorted(counts)))


main()
