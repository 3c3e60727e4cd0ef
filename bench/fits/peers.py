#!/usr/bin/env python3
"""The other side of peer.cpp: fits by another library over rows that the benchmark has mapped.

    peers.py flash|sklearn|superkmeans FILE_DESCRIPTOR THREADS

Reads questions, a line each, and answers each by a line of numbers, or by an empty one where it fails:
    fit N D K REPEATS ITERATIONS   median, least, most ms of so many iterations; ms of one; share of labels missed
    whole N D K REPEATS            ms, inertia, iterations of a fit with the library's defaults
First it says its version, or nothing where the library is missing.

flash-kmeans (PyTorch, Triton; TF32 products) has the rows on the GPU, and its time ends when the GPU is idle.
Its labels are compared with the nearest centroids by float64 distances, on up to 100,000 rows. SuperKMeans takes no
first centroids: it draws its own, and learns from all rows without an early end.
"""
import mmap
import os
import statistics
import sys
import time
import warnings

MISSED_ROWS = 100_000
LONG = 5000.0  # milliseconds of a whole fit: once is enough


class Flash:
    whole = None  # no first centroids of its own but random ones

    def __init__(self, threads):
        import torch
        from importlib.metadata import version
        from flash_kmeans import batch_kmeans_Euclid
        if not torch.cuda.is_available():
            raise ImportError("no GPU")
        self.torch, self.kmeans = torch, batch_kmeans_Euclid
        self.version = f"flash-kmeans {version('flash_kmeans')}, PyTorch {torch.__version__}"

    def load(self, rows, centroids):
        self.rows = self.torch.from_numpy(rows).cuda()[None]
        self.first = self.torch.from_numpy(centroids).cuda()[None]

    def fit(self, iterations):
        first = self.first.clone()
        self.torch.cuda.synchronize()
        begin = time.perf_counter()
        labels = self.kmeans(self.rows, first.shape[1], max_iters=iterations, tol=-1.0, init_centroids=first)[0]
        self.torch.cuda.synchronize()
        return time.perf_counter() - begin, labels[0]

    def missed(self, labels):
        some, wide = self.rows[0, :MISSED_ROWS].double(), self.first[0].double()
        nearest = self.torch.cat([
            self.torch.cdist(part, wide, compute_mode="donot_use_mm_for_euclid_dist").argmin(1)
            for part in some.split(max(1, (1 << 26) // len(wide)))])
        return (nearest != labels[:len(some)].long()).double().mean().item()

    def unload(self):
        self.rows = self.first = None
        self.torch.cuda.empty_cache()


class Sklearn:
    def __init__(self, threads):
        import sklearn
        from sklearn.cluster import KMeans
        self.kmeans = KMeans
        self.version = f"scikit-learn {sklearn.__version__}"

    def load(self, rows, centroids):
        self.rows, self.first = rows, centroids

    def timed(self, **options):
        begin = time.perf_counter()
        model = self.kmeans(len(self.first), **options).fit(self.rows)
        return time.perf_counter() - begin, model

    def fit(self, iterations):
        return self.timed(init=self.first, n_init=1, max_iter=iterations, tol=0.0)

    def whole(self):
        seconds, model = self.timed(random_state=1)
        return seconds, (model.inertia_, model.n_iter_)

    def missed(self, _):
        return float("nan")

    def unload(self):
        self.rows = self.first = None


class Superkmeans(Sklearn):
    def __init__(self, threads):
        import superkmeans
        self.kmeans, self.threads = superkmeans.SuperKMeans, threads
        self.version = f"superkmeans {superkmeans.__version__}"

    def fit(self, iterations):
        begin = time.perf_counter()
        self.kmeans(len(self.first), self.rows.shape[1], hierarchical=False, iters=iterations, sampling_fraction=1.0,
                    max_points_per_cluster=len(self.rows), n_threads=self.threads, tol=0.0,
                    early_termination=False).train(self.rows)
        return time.perf_counter() - begin, None

    whole = None  # its defaults learn from a sample of the rows


def timed(body, repeats, most=float("inf")):
    """As repeat() of measure.cpp: milliseconds of the calls that count, and what the last one returned."""
    def call_until(least):
        times = []
        while len(times) < least or (len(times) < 20 and sum(times) < 200):
            seconds, result = body()
            times.append(1e3 * seconds)
        return times, result

    warm = call_until(1)
    return warm if warm[0][0] > most else call_until(repeats)


def answer(library, numpy, descriptor, words):
    if words[0] == "whole" and library.whole is None:
        return ()
    n, d, k = (int(word) for word in words[1:4])
    memory = mmap.mmap(descriptor, 4 * (n + k) * d)
    values = numpy.frombuffer(memory, dtype=numpy.float32).reshape(n + k, d)
    library.load(values[:n], values[n:])
    try:
        repeats = int(words[4])
        if words[0] == "whole":
            times, result = timed(library.whole, repeats, LONG)
            return (statistics.median(times), *result)
        times, _ = timed(lambda: library.fit(int(words[5])), repeats)
        ones, labels = timed(lambda: library.fit(1), repeats)
        return statistics.median(times), min(times), max(times), statistics.median(ones), library.missed(labels)
    finally:
        library.unload()


def main():
    name, descriptor, threads = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what libraries print is no answer
    if threads > 0:
        for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
            os.environ[variable] = str(threads)  # before numpy loads its libraries
    warnings.filterwarnings("ignore")
    try:
        import numpy
        library = {"flash": Flash, "sklearn": Sklearn, "superkmeans": Superkmeans}[name](threads)
    except ImportError as error:
        print(f"{name} is left out: {error}", file=sys.stderr)
        return 0
    print(library.version, file=answers)
    for line in sys.stdin:
        try:
            print(*answer(library, numpy, descriptor, line.split()), file=answers)
        except Exception as error:  # the benchmark goes on without this figure
            print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr)
            print(file=answers)
    return 0


if __name__ == "__main__":
    sys.exit(main())
