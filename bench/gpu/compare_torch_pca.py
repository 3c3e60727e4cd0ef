#!/usr/bin/env python3
"""Compares the sums of a PCA on the GPU with PyTorch's, in one run.

    compare_torch_pca.py [--program build/bench/gpu] [--repeats 10]

`bench/gpu moments` prints the time of the backend's call for each shape, rows resident. PyTorch gets rows
of the same shape and does the same arithmetic: deviations from a given shift, their sums and the matrix
of their products (x'x); in the rows' own type with precision 'highest', for float32 also in float64, as
the backend's result is, and in TF32, which keeps three digits. Times are medians by CUDA events; a ratio
above 1 means that the backend is faster. Prints CSV.
"""
import argparse
import csv
import os
import statistics
import subprocess
import sys


def arguments():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--program", default=os.path.join(here, "..", "..", "build", "bench", "gpu"))
    parser.add_argument("--repeats", type=int, default=10)
    return parser.parse_args()


def timed(torch, repeats, work):
    times = []
    for _ in range(repeats + 2):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        work()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end))
    return statistics.median(times[2:])


def moments(torch, rows, shift, precision):
    torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
    deviations = (rows.double() if precision == "float64" else rows) - shift
    return deviations.sum(0), deviations.T @ deviations


def main():
    options = arguments()
    try:
        import torch
    except ImportError as error:
        print(f"compare_torch_pca: skipped, {error}")
        return 0
    output = subprocess.run([options.program, "moments"], check=True, capture_output=True, text=True).stdout
    print(f"# PyTorch {torch.__version__}, {torch.cuda.get_device_name()}, medians of {options.repeats}")
    print("n,d,type,ms,read_ms,of_reading,tflops,torch_ms,ratio,torch_float64_ms,torch_tf32_ms")
    for shape in csv.DictReader(output.splitlines()):
        n, d, kind, ms = int(shape["n"]), int(shape["d"]), shape["type"], float(shape["ms"])
        rows = torch.rand(n, d, dtype=getattr(torch, kind), device="cuda")
        shift = torch.full((d,), 0.5, dtype=rows.dtype, device="cuda")
        wanted = [kind] if kind == "float64" else ["float32", "float64", "tf32"]
        times = []
        for precision in wanted:
            other = shift.double() if precision == "float64" else shift
            times.append(timed(torch, options.repeats, lambda: moments(torch, rows, other, precision)))
        more = [f"{time:.3f}" for time in times[1:]] + [""] * (3 - len(times))
        print(f"{n},{d},{kind},{ms:.3f},{shape['read_ms']},{shape['ratio']},{shape['tflops']},{times[0]:.3f},"
              f"{times[0] / ms:.2f},{','.join(more)}", flush=True)
        del rows
        torch.cuda.empty_cache()
    return 0


if __name__ == "__main__":
    sys.exit(main())
