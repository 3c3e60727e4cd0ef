"""What the comparisons with scikit-learn share: their options, threads, and the programs that they run."""
import argparse
import csv
import os
import subprocess
import sys
import warnings


def arguments(description, program, last):
    """The command line; `program` is the benchmark's name, `last` what the third number of a set is."""
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser(description=description.split("\n")[0])
    parser.add_argument("--program", default=os.path.join(here, "..", "build", "bench", program))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0, help="share of the rows, for a quick look")
    parser.add_argument("--set", type=int, nargs=3, action="append", metavar=("N", "D", "K"), dest="sets",
                        help=f"these instead of the usual ones: rows, features, {last}")
    return parser.parse_args()


def libraries(options, name):
    """numpy, loaded with that many threads; None where scikit-learn is missing. Ends without the program."""
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[variable] = str(options.threads)  # before numpy loads its libraries
    try:
        import numpy
        import sklearn
    except ImportError as error:
        print(f"{name}: skipped, {error}")
        return None
    if not os.path.exists(options.program):
        sys.exit(f"{name}: {options.program} is not built (cmake -DPGKM_BENCH=ON)")
    warnings.filterwarnings("ignore")  # ten iterations are not meant to converge
    print(f"# scikit-learn {sklearn.__version__}, {options.threads} threads, medians of {options.repeats}")
    return numpy


def run_program(options, folder, n, d, *more):
    """What the benchmark says of one run over the file `points` in the folder: its row of CSV."""
    command = [options.program, "--threads", str(options.threads), "--repeats", "1", "--points",
               os.path.join(folder, "points"), "--n", str(n), "--d", str(d), *more]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return next(csv.DictReader(output.splitlines()))
