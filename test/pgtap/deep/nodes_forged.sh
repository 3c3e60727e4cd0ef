#!/bin/bash
# Requests of pgkm_node_call that nobody of ours has made: cut, mutated, out of order, of other shapes. They are errors or
# answers, and the server survives them.
if ! command -v python3 >/dev/null; then
    echo "1..0 # SKIP no python3"
    exit 0
fi
set -uo pipefail
source "$(dirname "$0")/../../../scripts/lib/tap.sh"
query -c "CREATE TABLE forged AS SELECT sin(i) AS x, cos(i * 3) AS y, 1 + i % 3 AS w FROM generate_series(1, 500) AS i"
state=$(psql -XqAt -v VERBOSITY=sqlstate -c "SELECT pgkm_node_call('\x01')" 2>&1 | grep -oE '[0-9A-Z]{5}$')
is "$state" 55000 'there is no answer before a load'
is "$(query -c "SELECT n, d, element FROM pgkm_node_load('{forged,forged}', '{x,y,y,x}', '{w,w}', false)" -c "SELECT pgkm_node_unload(), pgkm_node_unload()" | paste -sd ' ')" '1000|2|double precision t|f' 'rows of two tables'
is "$(query -c "SELECT pgkm_node_version() <> ''")" t 'a version'
is "$(query -c "CREATE ROLE forged_other" -c "SELECT n FROM pgkm_node_load('{forged}', '{x,y}', NULL, false)" -c "SET ROLE forged_other" -c "SELECT pgkm_node_unload()" -c "RESET ROLE" -c "SELECT pgkm_node_unload()" | paste -sd ' ')" '500 f t' 'another role does not unload the rows'
is "$(psql -XqAt -v VERBOSITY=sqlstate -c "SELECT n FROM pgkm_node_load('{forged}', '{x,y}', NULL, false)" -c "SET ROLE forged_other" -c "SELECT pgkm_node_call('\x01')" 2>&1 | grep -oE '[0-9A-Z]{5}$')" 55000 'and has no answer about them'
query -c "DROP ROLE forged_other"
# Statements: each request in a block of its own, so that an error ends no more than that.
python3 - >"/tmp/pgkm_forged.$$" <<'PYTHON'
import random, struct
random.seed(5)
def array(kind, values): return struct.pack("<Q", len(values)) + struct.pack("<%d%s" % (len(values), kind), *values)
def op(number, body=b"", most=2 ** 64 - 1): return struct.pack("<IIQ", 0x50474B08, number, most) + body
rows = lambda k: array("d", [random.uniform(-1, 1) for _ in range(2 * k)])
mass = lambda kind: struct.pack("<ii", kind, 40)
scales = struct.pack("<Q", 2) + struct.pack("<di", 0, 45) * 2
none = struct.pack("<Q", 0)
# k centroids, exponents, scales; then whether labels, distances, totals, masses, sums of squares and sizes are wanted
def clusters(k, scales, *wanted): return struct.pack("<iii", k, 43, 40) + scales + rows(k) + struct.pack("6B", *wanted)
# k means of this type, labels, factors and, with these, logarithms; then whether masses and labels are wanted
def mixture(k, kind, density): return struct.pack("<ii", k, kind) + rows(k) + none + density + struct.pack("BB", 1, 0)
density = array("d", [1] * 4) + array("d", [-1, -1]) + array("d", [0, 0])
runs = lambda bits, values, buckets: struct.pack("<iB", bits, values) + array("Q", buckets)
# 3: assign, 4: moments, 5: em_step; last, whether it is an iteration
call = lambda function, body, iteration=0: op(0, struct.pack("<I", function) + body + struct.pack("B", iteration))
iterate = lambda body: call(3, body, 1)
transform = lambda center, scale, metric: op(3, array("d", center) + array("d", scale) + struct.pack("<i", metric))
good = [op(1), op(2, array("d", [-1, -1, 1, 1, 3])), transform([0, 0], [1, 2], 1), transform([], [], 0),
        iterate(clusters(3, scales, 0, 0, 1, 1, 0, 0)), op(4, struct.pack("<q", 5)),
        call(3, clusters(3, none, 0, 0, 0, 0, 1, 1)), call(3, clusters(3, scales, 0, 0, 0, 1, 1, 1)), call(4, array("d", [0, 0])),
        call(5, mixture(2, 2, density)), call(5, mixture(2, 0, none)),
        op(6, struct.pack("<i", 3)), op(9, mass(1)), op(10, runs(3, 0, [0, 3, 7])), op(10, runs(3, 1, [1, 2])), op(10, runs(64, 1, [1, 2])),
        op(7, struct.pack("<i", 0) + rows(2)), op(9, mass(2)), op(11, rows(2)), op(12, array("i", [0, 1])), op(13, struct.pack("<i", 1)), op(8, struct.pack("<ii", 3, 43)),
        op(5, struct.pack("<i", 3) + rows(3) + array("d", [0] * 6)),
        op(1, most=50), op(14, struct.pack("<QQ", 0, 30)), op(14, struct.pack("<QQ", 30, 26)), # an answer in parts
        op(15, struct.pack("<QQ", 16, 0) + array("B", op(1)[:10])), op(15, struct.pack("<QQ", 16, 10) + array("B", op(1)[10:])), op(16)] # and a request
def mutate(message):
    data = bytearray(message)
    for _ in range(random.randint(1, 3)):
        how = random.randrange(4)
        if how == 0: data = data[:random.randrange(len(data) + 1)]
        elif how == 1 and data: data[random.randrange(len(data))] = random.randrange(256)
        elif how == 2 and len(data) >= 12:
            at = random.randrange(8, len(data) - 3); data[at:at + 4] = struct.pack("<I", random.choice([0, 1, 0x7fffffff, 0xffffffff, 0x80000000]))
        elif how == 3 and len(data) >= 16:
            at = random.randrange(8, len(data) - 7); data[at:at + 8] = struct.pack("<d", random.choice([float("nan"), float("inf"), 1e308, -0.0, 5e-324]))
    return bytes(data)
print("SELECT pgkm_node_load('{forged}', '{x,y}', '{w}', false) IS NULL;")
unweighted = [8, 9, 10] # sums of PCA and mixtures
def ask(numbers):
    for i in numbers: print("SELECT 'good', length(pgkm_node_call('\\x%s')) >= 0;" % good[i].hex())
    for _ in range(1500): print("SELECT pgkm_node_call('\\x%s') IS NULL;" % mutate(random.choice(good)).hex())
ask([i for i in range(len(good)) if i not in unweighted])
print("SELECT pgkm_node_load('{forged}', '{x,y}', NULL, false) IS NULL;")
ask(unweighted)
print("SELECT 'good', length(pgkm_node_call('\\x%s')) >= 0;" % op(6, struct.pack("<i", 3)).hex())
for body in op(4, struct.pack("<q", 0)), op(4, struct.pack("<q", -1)):
    print("SELECT 'no rows', pgkm_node_call('\\x%s');" % body.hex())
for body in op(10, runs(3, 0, [3, 3])), op(10, runs(64, 1, [2, 1])):
    print("SELECT 'disorder', pgkm_node_call('\\x%s');" % body.hex())
# An enumerator of none, an array of another length, one that is not there, labels that would have to be checked, sums without
# scales, bytes behind the end, ranges that do not have all rows.
for body in (op(2, array("d", [-0.5, -1, 1, 1, 3])), transform([], [], 2), transform([], [], -1), call(5, mixture(2, 4, density)), call(5, mixture(2, -1, density)),
             call(5, mixture(2, 1, density + none)), call(3, struct.pack("<iii", 3, 43, 40) + none + rows(2) + struct.pack("6B", 0, 0, 0, 0, 1, 1)),
             call(3, struct.pack("<iii", 3, 43, 40) + none + none + struct.pack("6B", 0, 0, 0, 0, 1, 1)), call(3, clusters(3, scales, 1, 0, 0, 0, 0, 0)),
             call(5, struct.pack("<ii", 2, 2) + rows(2) + array("i", [9] * 500) + struct.pack("B", 1)), call(2, clusters(3, scales, 0, 0, 1, 1, 0, 0)),
             iterate(clusters(3, none, 0, 0, 1, 1, 0, 0)), call(4, array("d", [0, 0]) + b"\0"),
             op(14, struct.pack("<QQ", 0, 1)), op(14, struct.pack("<QQ", 2 ** 63, 2 ** 63)), op(15, struct.pack("<QQ", 2 ** 60, 2 ** 59) + none),
             op(15, struct.pack("<QQ", 4, 0) + array("B", [0] * 5)), op(16)):
    print("SELECT 'no such', pgkm_node_call('\\x%s');" % body.hex())
print("SELECT 'alive', length(pgkm_node_call('\\x%s')) > 0;" % good[0].hex())
PYTHON
said=$(psql -XqAt -v VERBOSITY=sqlstate -f "/tmp/pgkm_forged.$$" 2>&1)
rm -f "/tmp/pgkm_forged.$$"
is "$(grep -c '^good|t$' <<<"$said")" 30 'requests in order are answered'
is "$(tail -n 1 <<<"$said")" 'alive|t' 'the session survives 3000 forged ones'
is "$(tail -n 23 <<<"$said" | head -n 4 | grep -oE '[0-9A-Z]{5}$' | paste -sd ' ')" '22023 22023 22023 22023' 'farthest rows are one or more; buckets and keys come in order and once'
is "$(tail -n 19 <<<"$said" | grep -oE '[0-9A-Z]{5}$' | sort | uniq -c | xargs)" '18 22023' 'what cannot be is refused by its shape'
is "$(grep -oE 'ERROR: +[0-9A-Z]{5}' <<<"$said" | grep -vE '22023|53200|54000' | sort | uniq -c)" '' 'which are errors of their own'

# Servers that are none of ours: one whose host says nothing (its queue of connections is full), one that answers with a COPY.
if [ "$(query -c "SELECT count(*) FROM pg_available_extensions WHERE name = 'postgres_fdw'")" = 1 ]; then
    ports=/tmp/pgkm_ports.$$
    python3 - >"$ports" <<'PYTHON' &
import socket, struct
def listener(backlog):
    at = socket.socket(); at.bind(("127.0.0.1", 0)); at.listen(backlog)
    return at
silent, copies = listener(0), listener(5)
waiting = [socket.socket() for _ in range(4)]
for one in waiting: one.setblocking(False); one.connect_ex(silent.getsockname())
print(silent.getsockname()[1], copies.getsockname()[1], flush=True)
while True:
    server, _ = copies.accept()
    while struct.unpack(">II", server.recv(8, socket.MSG_WAITALL))[1] in (80877103, 80877104): server.sendall(b"N")
    server.sendall(b"R" + struct.pack(">II", 8, 0) + b"Z" + struct.pack(">Ic", 5, b"I"))
    said = b""
    while b"S\0\0\0\4" not in said: said += server.recv(65536)
    server.sendall(b"1\0\0\0\0042\0\0\0\4H" + struct.pack(">IbH", 7, 0, 0))
    while server.recv(65536): pass
PYTHON
    python=$!
    for ((i = 0; i < 200; i++)); do [ -s "$ports" ] && break || sleep 0.05; done
    read -r silent copies <"$ports"
    query -c "CREATE EXTENSION IF NOT EXISTS postgres_fdw" -c "CREATE TABLE forged_rows (x float8, y float8) PARTITION BY RANGE (x)" -c "CREATE SERVER forger FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '127.0.0.1', port '$silent')" \
        -c "CREATE USER MAPPING FOR CURRENT_USER SERVER forger" -c "CREATE FOREIGN TABLE forged_there PARTITION OF forged_rows FOR VALUES FROM (0) TO (9) SERVER forger"
    fit() { psql -XqAt -v VERBOSITY=sqlstate -c "$1" -c "SELECT kmeans_fit('forged_rows', '{x,y}', 2)" 2>&1 | grep -oE '[0-9A-Z]{5}$'; }
    is "$(fit "SET statement_timeout = '1s'")" 57014 'a host that says nothing does not hold up a cancel'
    is "$(fit "SET pg_kmeans.node_timeout = '3s'")" 08006 'and is given up'
    query -c "ALTER SERVER forger OPTIONS (SET port '$copies')"
    is "$(fit "SET statement_timeout = '30s'")" 08P01 'an answer that is a COPY is an error'
    query -c "DROP TABLE forged_rows" -c "DROP SERVER forger CASCADE"
    kill $python
    rm -f "$ports"
fi
echo "1..$number"
