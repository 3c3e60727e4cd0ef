#!/usr/bin/env python3
"""Compares EM and PCA on the CPU backend with scikit-learn's, side by side in one run.

    compare_mixture.py [--program build/bench/mixture] [--threads 2] [--repeats 3] [--scale 1] [--set N D K]...

Both get the same float64 rows, the same first parameters (means, equal weights, spherical precisions)
and run ten iterations with tol = 0; they take turns, so that a machine that does other work disturbs
both alike. Times are medians in milliseconds per iteration, of scikit-learn the difference between
fits of twelve and of two iterations, so that checks of the input and the last E step do not count;
of PCA the whole fit. The cpu columns are the processor time of all threads. A ratio below 1 means that
the backend is faster. Prints CSV. Where scikit-learn is missing it says so and ends with 0.
"""
import argparse
import csv
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings

MIXTURES = [(1_000_000, 3, 8), (500_000, 16, 32), (200_000, 32, 16), (50_000, 128, 8)]
ANALYSES = [(262_144, 80), (200_000, 128), (20_000, 512)]


def arguments():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--program", default=os.path.join(here, "..", "build", "bench", "mixture"))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0, help="share of the rows, for a quick look")
    parser.add_argument("--set", type=int, nargs=3, action="append", metavar=("N", "D", "K"), dest="sets",
                        help="these instead of the usual ones: rows, features, components (0: PCA)")
    return parser.parse_args()


def libraries(options):
    """numpy, loaded with that many threads; None where scikit-learn is missing. Ends without the program."""
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[variable] = str(options.threads)  # before numpy loads its libraries
    try:
        import numpy
        import sklearn
    except ImportError as error:
        print(f"compare_mixture: skipped, {error}")
        return None
    if not os.path.exists(options.program):
        sys.exit(f"compare_mixture: {options.program} is not built (cmake -DPGKM_BENCH=ON)")
    warnings.filterwarnings("ignore")  # ten iterations are not meant to converge
    print(f"# scikit-learn {sklearn.__version__}, {options.threads} threads, medians of {options.repeats}")
    return numpy


def run_backend(options, folder, n, d, *more):
    """Milliseconds, by the clock and of processors, of one run over the file `points` in the folder."""
    command = [options.program, "--threads", str(options.threads), "--repeats", "1", "--points",
               os.path.join(folder, "points"), "--n", str(n), "--d", str(d), *more]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    row = next(csv.DictReader(output.splitlines()))
    return float(row["iteration_ms"]), float(row["cpu_ms"])


def blobs(numpy, n, d, k):
    random = numpy.random.default_rng(42)
    centres = random.normal(0, 3, (k, d))
    points = centres[random.integers(0, k, n)] + random.normal(0, 1, (n, d))
    return points, centres + random.normal(0, 0.5, (k, d))


def timed(work):
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return 1e3 * (time.perf_counter() - wall), 1e3 * (time.process_time() - cpu)


def run_mixture(numpy, GaussianMixture, points, means, kind):
    k, d = means.shape
    precisions = {"full": numpy.stack([numpy.eye(d)] * k), "tied": numpy.eye(d), "diag": numpy.ones((k, d)),
                  "spherical": numpy.ones(k)}[kind]
    times = []
    for max_iter in (2, 12):
        model = GaussianMixture(k, covariance_type=kind, tol=0.0, max_iter=max_iter, means_init=means,
                                weights_init=numpy.full(k, 1 / k), precisions_init=precisions)
        times.append(timed(lambda: model.fit(points)))
    return tuple((more - less) / 10 for less, more in zip(*times))


def report(name, n, d, k, ours, theirs):
    wall, cpu = (statistics.median(column) for column in zip(*ours))
    sk_wall, sk_cpu = (statistics.median(column) for column in zip(*theirs))
    print(f"{name},{n},{d},{k},{wall:.1f},{sk_wall:.1f},{wall / sk_wall:.2f},{cpu:.1f},{sk_cpu:.1f},{cpu / sk_cpu:.2f}",
          flush=True)


def main():
    options = arguments()
    numpy = libraries(options)
    if numpy is None:
        return 0
    from sklearn.decomposition import PCA
    from sklearn.mixture import GaussianMixture
    sets = options.sets or MIXTURES + [(n, d, 0) for n, d in ANALYSES]
    print("what,n,d,k,ms,sklearn_ms,ratio,cpu_ms,sklearn_cpu_ms,cpu_ratio")
    with tempfile.TemporaryDirectory() as folder:
        for n, d, k in (entry for entry in sets if entry[2] > 0):
            n = max(k, int(n * options.scale))
            points, means = blobs(numpy, n, d, k)
            points.tofile(os.path.join(folder, "points"))
            means.tofile(os.path.join(folder, "means"))
            for kind in ("full", "tied", "diag", "spherical"):
                more = ("--means", os.path.join(folder, "means"), "--k", str(k), "--type", kind, "--precision", "1")
                ours, theirs = [], []
                for _ in range(options.repeats):
                    ours.append(run_backend(options, folder, n, d, *more))
                    theirs.append(run_mixture(numpy, GaussianMixture, points, means, kind))
                report(kind, n, d, k, ours, theirs)
        for n, d, _ in (entry for entry in sets if entry[2] == 0):
            n = max(d, int(n * options.scale))
            points, _ = blobs(numpy, n, d, 10)
            points.tofile(os.path.join(folder, "points"))
            ours, theirs = [], []
            for _ in range(options.repeats):
                ours.append(run_backend(options, folder, n, d, "--pca", "1"))
                theirs.append(timed(lambda: PCA().fit(points)))
            report("pca", n, d, "", ours, theirs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
