#!/usr/bin/env python3
"""Compares the CPU backend with scikit-learn's Lloyd k-means, side by side in one run.

    compare_sklearn.py [--program build/bench/cpu_assign] [--threads 2] [--repeats 3] [--scale 1] [--set N D K]...

Both get the same float32 rows and the same initial centroids and run ten iterations (tol = 0,
n_init = 1) and one; they take turns, so that a machine that does other work disturbs both alike.
Times are medians, in milliseconds per iteration; a ratio below 1 means that the backend is
faster. scikit-learn's time includes its checks of the input, ours the set-up of the job.
Prints CSV. Where scikit-learn is missing it says so and ends with 0.
"""
import os
import statistics
import sys
import tempfile
import time

from beside_sklearn import arguments, libraries, run_program

SETS = [(1_000_000, 2, 100), (1_000_000, 8, 100), (1_000_000, 34, 32), (500_000, 54, 64), (100_000, 128, 256)]


def blobs(numpy, n, d, k):
    """Ten centres uniform in [-100, 100]^d, points at radius 10, k of them as centroids."""
    random = numpy.random.default_rng(42)
    centres = random.uniform(-100, 100, (10, d))
    points = centres[random.integers(0, 10, n)] + random.normal(0, 10 / d**0.5, (n, d))
    points = points.astype(numpy.float32)
    return points, points[random.choice(n, k, replace=False)].copy()


def run_backend(options, folder, n, d, k):
    """Milliseconds of (a fit of one iteration, ten iterations per iteration)."""
    row = run_program(options, folder, n, d, "--centroids", os.path.join(folder, "centroids"), "--k", str(k))
    return float(row["first_ms"]), float(row["iteration_ms"])


def run_sklearn(KMeans, points, centroids):
    times = []
    for max_iter in (1, 10):
        model = KMeans(n_clusters=len(centroids), init=centroids, n_init=1, max_iter=max_iter, tol=0.0,
                       algorithm="lloyd")
        start = time.perf_counter()
        model.fit(points)
        times.append(1e3 * (time.perf_counter() - start) / model.n_iter_)
    return times


def main():
    options = arguments(__doc__, "cpu_assign", "clusters")
    numpy = libraries(options, "compare_sklearn")
    if numpy is None:
        return 0
    from sklearn.cluster import KMeans
    print("n,d,k,first_ms,sklearn_first_ms,first_ratio,iteration_ms,sklearn_iteration_ms,iteration_ratio")
    for n, d, k in options.sets or SETS:
        n = max(k, int(n * options.scale))
        points, centroids = blobs(numpy, n, d, k)
        ours, theirs = [], []
        with tempfile.TemporaryDirectory() as folder:
            points.tofile(os.path.join(folder, "points"))
            centroids.tofile(os.path.join(folder, "centroids"))
            for _ in range(options.repeats):
                ours.append(run_backend(options, folder, n, d, k))
                theirs.append(run_sklearn(KMeans, points, centroids))
        first, iteration = (statistics.median(column) for column in zip(*ours))
        sk_first, sk_iteration = (statistics.median(column) for column in zip(*theirs))
        print(f"{n},{d},{k},{first:.1f},{sk_first:.1f},{first / sk_first:.2f},"
              f"{iteration:.1f},{sk_iteration:.1f},{iteration / sk_iteration:.2f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
