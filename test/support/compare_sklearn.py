#!/usr/bin/env python3
"""TAP: models in the database beside scikit-learn's on the same rows.

The larger sets are looked for in PGKM_DATA (default: ../shared/data beside the checkout).
"""
import gzip
import itertools
import json
import os
import pathlib
import subprocess
import warnings

import numpy as np
from sklearn import cluster, datasets, decomposition, mixture, preprocessing

DATA = pathlib.Path(os.environ.get("PGKM_DATA", pathlib.Path(__file__).resolve().parents[3] / "shared" / "data"))
TOLERANCE = 1e-6
number = 0


def result(passed, text, note=""):
    global number
    number += 1
    print(f"{'ok' if passed else 'not ok'} {number} - {text}", flush=True)
    if not passed:
        print(f"# {note}", flush=True)


def query(sql):
    answer = subprocess.run(["psql", "-XqAt", "-v", "ON_ERROR_STOP=1", "-f", "-"], input=sql, capture_output=True,
                            text=True)
    if answer.returncode != 0:
        raise RuntimeError(answer.stderr)
    return answer.stdout


def array(values):
    """The text of an SQL array of any number of dimensions."""
    if isinstance(values, list):
        return "{" + ",".join(map(array, values)) + "}"
    return repr(values)


def load(name, x):
    rows = "".join(array(row) + "\n" for row in x.tolist())
    query(f"CREATE TABLE {name} (f double precision[]);\nCOPY {name} FROM STDIN;\n{rows}\\.\n")


def model(sql):
    fields = json.loads(query(f"SELECT to_json(m) FROM ({sql}) AS t (m)"))
    return {key: np.array(value) if isinstance(value, list) else value for key, value in fields.items()}


def kdd99():
    """The 38 numeric columns of each fifth row, which are many still, standardised; constant ones stay 0."""
    with gzip.open(DATA / "kddcup99" / "kddcup.data_10_percent.gz", "rt") as lines:
        rows = [[value for i, value in enumerate(line.split(",")[:41]) if i not in (1, 2, 3)]
                for line in itertools.islice(lines, 0, None, 5)]
    return preprocessing.StandardScaler().fit_transform(np.array(rows, dtype=float))


def resnet():
    return np.load(DATA / "embeddings" / "resnet18_CIFAR10_0.npz")["X"].astype(float)


def sets():
    for name, loader in (("iris", datasets.load_iris), ("wine", datasets.load_wine), ("digits", datasets.load_digits)):
        yield name, loader().data.astype(float)
    for name, loader in (("kdd99", kdd99), ("resnet", resnet)):
        try:
            yield name, loader()
        except OSError:
            print(f"# {name}: not found", flush=True)


def difference(ours, theirs):
    return np.max(np.abs(ours - theirs) / np.maximum(np.abs(theirs), 1.0))


def compare_pca(name, x, how, ours, standardize):
    """Components up to sign; those of all but equal variance, which no data tell apart, are left out."""
    prepared = preprocessing.StandardScaler().fit_transform(x) if standardize else x
    count = min(10, x.shape[1])
    theirs = decomposition.PCA(svd_solver="full").fit(prepared)
    variance = theirs.explained_variance_
    error = max(difference(ours["mean"], x.mean(axis=0)),
                np.max(np.abs(ours["explained_variance"][:count] - variance[:count])) / variance[0],
                difference(ours["explained_variance_ratio"][:count], theirs.explained_variance_ratio_[:count]))
    for j in range(count):
        gap = min(abs(variance[j] - variance[i]) for i in (j - 1, j + 1) if 0 <= i < len(variance))
        if gap > 1e-6 * variance[0]:
            dot = ours["components"][j] @ theirs.components_[j]
            error = max(error, np.max(np.abs(ours["components"][j] - np.sign(dot) * theirs.components_[j])))
    result(error <= TOLERANCE, f"{how} of {name}{', standardized' if standardize else ''}", f"differs by {error:.2g}")


def first_parameters(x, k, kind):
    """Weights, means and precisions to begin with: clusters of k-means, the spread of all rows."""
    n, d = x.shape
    means = cluster.KMeans(k, n_init=1, max_iter=20, random_state=0).fit(x).cluster_centers_
    precision = 1.0 / (x.var(axis=0).mean() + 1e-6)
    identity = precision * np.eye(d)
    precisions = {"full": np.stack([identity] * k), "tied": identity, "diag": np.full((k, d), precision),
                  "spherical": np.full(k, precision)}[kind]
    return np.full(k, 1.0 / k), means, precisions


def compare_gmm(name, x, k, kind, iterations):
    weights, means, precisions = first_parameters(x, k, kind)
    theirs = mixture.GaussianMixture(k, covariance_type=kind, tol=0.0, max_iter=iterations, weights_init=weights,
                                     means_init=means, precisions_init=precisions)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs.fit(x)
    options = (f"covariance_type => '{kind}', tol => 0, max_iter => {iterations}, weights_init => "
               f"'{array(weights.tolist())}', means_init => '{array(means.tolist())}', precisions_init => "
               f"'{array(precisions.tolist())}'")
    for how, sql in (("gmm_fit", f"SELECT gmm_fit('{name}', '{{f}}', {k}, {options})"),
                     ("gmm", f"SELECT gmm(f, {k}, gmm_options({options})) FROM {name}")):
        ours = model(sql)
        total = theirs.score(x) * len(x)
        spread = np.sqrt(np.maximum(x.var(axis=0), 1e-6))
        scale = {"full": np.outer(spread, spread), "tied": np.outer(spread, spread), "diag": spread ** 2,
                 "spherical": (spread ** 2).mean()}[kind]
        error = max(abs(ours["log_likelihood"] - total) / abs(total),
                    np.max(np.abs(ours["weights"] - theirs.weights_)),
                    np.max(np.abs(ours["means"] - theirs.means_) / spread),
                    np.max(np.abs(ours["covariances"] - theirs.covariances_) / scale),
                    abs(ours["aic"] - theirs.aic(x)) / abs(total), abs(ours["bic"] - theirs.bic(x)) / abs(total))
        result(error <= TOLERANCE, f"{how} of {name}, {kind}, k = {k}", f"differs by {error:.2g}")


MIXTURES = {"iris": (3, 50), "wine": (3, 50), "digits": (10, 20), "kdd99": (4, 5), "resnet": (2, 5)}

for set_name, values in sets():
    load(set_name, values)
    compare_pca(set_name, values, "pca_fit", model(f"SELECT pca_fit('{set_name}', '{{f}}')"), False)
    compare_pca(set_name, values, "pca", model(f"SELECT pca(f) FROM {set_name}"), False)
    compare_pca(set_name, values, "pca", model(f"SELECT pca(f, pca_options(standardize => true)) FROM {set_name}"), True)
    components, steps = MIXTURES[set_name]
    for covariance_type in ("full", "tied", "diag", "spherical"):
        compare_gmm(set_name, values, components, covariance_type, steps)
print(f"1..{number}")
