#!/usr/bin/env python3
"""One iteration of pg_kmeans' CUDA plugin beside flash-kmeans', in one run on one GPU.

    compare_flash.py [--program build/bench/gpu] [--rows 0 1 ...] [--repeats 20]

Runs `gpu auto` shape by shape and, in turn, flash-kmeans (PyTorch, Triton; float32 rows, TF32
products) on blobs of the same kind: 10 centres uniform in [-100, 100] per coordinate, normal
spread of 10 / sqrt(d), k random rows as first centroids. flash-kmeans' time is that of one call
of many iterations less one of a single iteration, per iteration. `missed` is the share of its
labels that are not the nearest centroid by float64 distances, on up to 100,000 of the rows;
pg_kmeans' labels are exact by contract (test/backend). Prints CSV. Says so and ends with 0 where
PyTorch, flash-kmeans (pip install flash-kmeans) or a GPU is missing.
"""
import argparse
import csv
import os
import statistics
import subprocess
import sys
import time


def arguments():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--program", default=os.path.join(here, "..", "..", "build", "bench", "gpu"))
    parser.add_argument("--rows", type=int, nargs="*", default=list(range(14)))
    parser.add_argument("--repeats", type=int, default=20, help="iterations of flash-kmeans that are timed")
    return parser.parse_args()


def run_plugin(program, row):
    """The line of one shape, by column."""
    output = subprocess.run([program, "auto", str(row)], check=True, capture_output=True, text=True).stdout
    return next(csv.DictReader(output.splitlines()))


def blobs(torch, n, d, k):
    generator = torch.Generator(device="cuda").manual_seed(42)
    centres = torch.rand((10, d), generator=generator, device="cuda") * 200 - 100
    points = torch.empty((n, d), device="cuda")
    step = max(1, (1 << 28) // d)
    for first in range(0, n, step):
        part = points[first:first + step]
        which = torch.randint(0, 10, (len(part),), generator=generator, device="cuda")
        part.normal_(0, 10 / d**0.5, generator=generator).add_(centres[which])
    return points, points[torch.randperm(n, generator=generator, device="cuda")[:k]].clone()


def run_flash(torch, fit, points, centroids, repeats):
    """Milliseconds per iteration, and the labels and centroids of a single one."""
    def seconds(iterations):
        torch.cuda.synchronize()
        start = time.perf_counter()
        result = fit(points[None], len(centroids), max_iters=iterations, tol=-1.0, init_centroids=centroids[None].clone())
        torch.cuda.synchronize()
        return time.perf_counter() - start, result

    seconds(2)  # compiles
    once = statistics.median(seconds(1)[0] for _ in range(3))
    many = statistics.median(seconds(repeats + 1)[0] for _ in range(3))
    return 1e3 * (many - once) / repeats, seconds(1)[1][0][0]


def missed(torch, points, centroids, labels):
    """The share of labels that are not the lowest index of the least float64 distance."""
    some = points[:100_000].double()
    wide = centroids.double()
    nearest = torch.cat([torch.cdist(part, wide, compute_mode="donot_use_mm_for_euclid_dist").argmin(1)
                         for part in some.split(max(1, (1 << 26) // len(wide)))])
    return (nearest != labels[:len(some)].long()).double().mean().item()


def main():
    options = arguments()
    try:
        import torch
        from flash_kmeans import batch_kmeans_Euclid
    except ImportError as error:
        print(f"compare_flash: skipped, {error}")
        return 0
    if not torch.cuda.is_available():
        print("compare_flash: skipped, no GPU")
        return 0
    print(f"# {torch.cuda.get_device_name()}, PyTorch {torch.__version__}")
    print("n,d,k,pg_kmeans_ms,flash_kmeans_ms,ratio,flash_kmeans_missed,limit_ms,goal_ms")
    for row in options.rows:
        ours = run_plugin(options.program, row)
        n, d, k = int(ours["n"]), int(ours["d"]), int(ours["k"])
        best = min(float(ours[name]) for name in ("iteration_ms", "loop_ms") if float(ours[name]) > 0)
        points, centroids = blobs(torch, n, d, k)
        theirs, labels = run_flash(torch, batch_kmeans_Euclid, points, centroids, options.repeats)
        share = missed(torch, points, centroids, labels)
        print(f"{n},{d},{k},{best:.4f},{theirs:.4f},{theirs / best:.1f},{share:.4f},{ours['limit_ms']},{ours['goal_ms']}",
              flush=True)
        del points, centroids, labels
        torch.cuda.empty_cache()
    return 0


if __name__ == "__main__":
    sys.exit(main())
