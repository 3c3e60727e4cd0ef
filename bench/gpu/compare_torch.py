#!/usr/bin/env python3
"""One E step of EM with the sums of the M step: pg_kmeans' CUDA plugin beside PyTorch, on one GPU.

    compare_torch.py [--program build/bench/gpu] [--rows 0 1] [--repeats 20] [--compile]

Runs `gpu mixture` shape by shape and, in turn, the same arithmetic in PyTorch on rows of the same shape
and element, on the device: log densities of all components, log-sum-exp, responsibilities, their sums
and those of r x and r x^2 (diag, spherical) or r (x - mean)(x - mean)' (full). diag is scikit-learn's
formula, matrix products with [x, x^2]; spherical and tied are squared distances by one product; full is tried as batched matrix products over all components and
as a loop over them, and the faster counts. `torch_ms` is the median by CUDA events over
`--repeats` steps; `em_step_ms` is the whole call, with the parameters' way to the device and the sums'
way back. --compile adds torch.compile's time. Prints CSV. Says so and ends with 0 where
PyTorch or a GPU is missing.
"""
import argparse
import csv
import math
import os
import statistics
import subprocess
import sys


def arguments():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--program", default=os.path.join(here, "..", "..", "build", "bench", "gpu"))
    parser.add_argument("--rows", type=int, nargs="*", default=[0, 1])
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--compile", action="store_true", help="torch.compile's time as well")
    return parser.parse_args()


def run_plugin(program, row):
    """The lines of one shape: float32, float64."""
    output = subprocess.run([program, "mixture", str(row)], check=True, capture_output=True, text=True).stdout
    return list(csv.DictReader(output.splitlines()))


def step_diag(torch, x, means, factors, constants):
    """means, factors: k x d; constants: k."""
    precisions = factors * factors
    squares = x * x
    density = (constants - 0.5 * (means * means * precisions).sum(1)
               + x @ (means * precisions).T - 0.5 * (squares @ precisions.T))
    norm = torch.logsumexp(density, 1, keepdim=True)
    shares = torch.exp(density - norm)
    return norm.sum(), shares.sum(0), shares.T @ x, shares.T @ squares


def step_spherical(torch, x, means, factors, constants):
    """One factor a component: squared distances by one product."""
    precisions = factors[:, 0] * factors[:, 0]
    squares = (x * x).sum(1)
    density = (constants - 0.5 * (means * means).sum(1) * precisions + (x @ means.T) * precisions
               - 0.5 * squares[:, None] * precisions)
    norm = torch.logsumexp(density, 1, keepdim=True)
    shares = torch.exp(density - norm)
    return norm.sum(), shares.sum(0), shares.T @ x, shares.T @ squares


def step_tied(torch, x, means, factors, constants):
    """factors: d x d, lower triangular; second sums do not depend on responsibilities."""
    y, targets = x @ factors.T, means @ factors.T
    density = constants - 0.5 * (targets * targets).sum(1) + y @ targets.T - 0.5 * (y * y).sum(1, keepdim=True)
    norm = torch.logsumexp(density, 1, keepdim=True)
    shares = torch.exp(density - norm)
    return norm.sum(), shares.sum(0), shares.T @ x


def step_full(torch, x, means, factors, constants):
    """factors: k x d x d, lower triangular."""
    centred = x[None] - means[:, None]
    density = constants[:, None] - 0.5 * torch.bmm(centred, factors.transpose(1, 2)).square_().sum(2)
    norm = torch.logsumexp(density, 0, keepdim=True)
    shares = torch.exp(density - norm)
    weighted = shares[:, :, None] * centred
    return norm.sum(), shares.sum(1), weighted.sum(1), torch.bmm(weighted.transpose(1, 2), centred)


def step_full_loop(torch, x, means, factors, constants):
    density = torch.empty((len(means), len(x)), device=x.device, dtype=x.dtype)
    for j, (mean, factor) in enumerate(zip(means, factors)):
        z = torch.addmm(-(factor @ mean), x, factor.T)
        torch.sub(constants[j], z.square_().sum(1), alpha=0.5, out=density[j])
    norm = torch.logsumexp(density, 0, keepdim=True)
    shares = torch.exp(density - norm)
    scatters = []
    for share, mean in zip(shares, means):
        centred = x - mean
        scatters.append((centred * share[:, None]).T @ centred)
    return norm.sum(), shares.sum(1), shares @ x, torch.stack(scatters)


STEPS = {"diag": [step_diag], "spherical": [step_spherical], "tied": [step_tied], "full": [step_full, step_full_loop]}


def time_torch(torch, step, inputs, repeats):
    times = []
    for repeat in range(repeats + 3):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        step(torch, *inputs)
        end.record()
        torch.cuda.synchronize()
        if repeat >= 3:
            times.append(begin.elapsed_time(end))
        if sum(times) > 3000:
            break
    return statistics.median(times)


def inputs_of(torch, kind, element, n, d, k, factor):
    generator = torch.Generator(device="cuda").manual_seed(42)
    options = {"generator": generator, "device": "cuda", "dtype": getattr(torch, element)}
    x = torch.rand((n, d), **options) * 16
    x += torch.randint(0, 4, (n, d), generator=generator, device="cuda") * 8
    if kind == "full":
        factors = torch.eye(d, device="cuda", dtype=x.dtype).repeat(k, 1, 1) * factor
    elif kind == "tied":
        factors = torch.eye(d, device="cuda", dtype=x.dtype) * factor
    else:
        factors = torch.full_like(x[:k], factor)
    constants = torch.full((k,), -3.0 - 0.5 * d * math.log(2 * math.pi), device="cuda", dtype=x.dtype)
    return x, x[:k].clone(), factors, constants


def main():
    options = arguments()
    try:
        import torch
    except ImportError as error:
        print(f"compare_torch: skipped, {error}")
        return 0
    if not torch.cuda.is_available():
        print("compare_torch: skipped, no GPU")
        return 0
    print(f"# {torch.cuda.get_device_name()}, PyTorch {torch.__version__}")
    compiled = ",compiled_ms,compiled_ratio" if options.compile else ""
    print("covariance_type,element,n,d,k,factor,em_step_ms,torch_ms,ratio" + compiled)
    for row in options.rows:
        for ours in run_plugin(options.program, row):
            kind, element, n, d, k = ours["covariance_type"], ours["element"], *(int(ours[i]) for i in "ndk")
            inputs = inputs_of(torch, kind, element, n, d, k, float(ours["factor"]))
            own = float(ours["em_step_ms"])
            theirs = [min(time_torch(torch, step, inputs, options.repeats) for step in STEPS[kind])]
            if options.compile:
                theirs.append(min(time_torch(torch, torch.compile(step), inputs, options.repeats)
                                  for step in STEPS[kind]))
            print(f"{kind},{element},{n},{d},{k},{ours['factor']},{own:.3f}," + ",".join(f"{t:.3f},{t / own:.2f}" for t in theirs),
                  flush=True)
            del inputs
            torch.cuda.empty_cache()
    return 0


if __name__ == "__main__":
    sys.exit(main())
