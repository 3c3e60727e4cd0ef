#!/usr/bin/env python3
"""Makes .npy files of real data sets for `fits --file`, and prints those options.

    fits $(datasets.py [--rows 1000000] [--only NAME]... [--k K] OUT [FOLDER])

FOLDER, or the variable PGKM_DATA, holds the sets under the names that they are spread by (.gz and .xz are read, too):
MNIST, Covertype, the KDD Cup of 1999, features by ResNet-18, GloVe vectors. Text becomes a number in the order in
which it first appears; a column of classes at the end is left out. Rows are repeated until there are that many, each
value times 1 + N(0, 0.01), so that zeros stay. A set that is not there is left out, with a message.
"""
import argparse
import concurrent.futures
import gzip
import io
import lzma
import os
import pathlib
import sys

import numpy

NOISE = numpy.float32(0.01)


def opened(path):
    """The bytes of a file, unpacked."""
    return {".gz": gzip.open, ".xz": lzma.open}.get(path.suffix, open)(path, "rb")


def images(path):
    with opened(path) as file:
        data = file.read()
    count, height, width = numpy.frombuffer(data[4:16], dtype=">i4")
    return numpy.frombuffer(data[16:], dtype=numpy.uint8).reshape(count, height * width)


def table(path):
    """Comma-separated values without the last column."""
    with opened(path) as file:
        fields = [line.split(",")[:-1] for line in io.TextIOWrapper(file).read().splitlines()]
    columns = []
    for column in zip(*fields):
        try:
            columns.append(numpy.array(column, dtype=numpy.float32))
        except ValueError:
            order = {text: number for number, text in enumerate(dict.fromkeys(column))}
            columns.append(numpy.array([order[text] for text in column], dtype=numpy.float32))
    return numpy.stack(columns, axis=1)


def array(path):
    with opened(path) as file:
        values = numpy.load(io.BytesIO(file.read()))
    return values["X"] if path.suffix == ".npz" else values


# name: (pattern of its files, the largest of which counts; reader; clusters)
SETS = {
    "mnist": ("*-images-idx3-ubyte*", images, 256),
    "covertype": ("covtype*.data*", table, 64),
    "covertype10": ("cover_classes2and4*.csv*", table, 64),
    "kddcup99": ("kddcup.data*", table, 64),
    "resnet18": ("resnet18*.npz", array, 1024),
    "glove": ("glove*.npy*", array, 1024),
}


def write(path, rows, count):
    """Repeats of the rows with noise, `count` in all."""
    rows = numpy.asarray(rows, dtype=numpy.float32)
    out = numpy.lib.format.open_memmap(path, mode="w+", dtype=numpy.float32, shape=(count, rows.shape[1]))

    def repeat(first):
        part = out[first:first + len(rows)]
        random = numpy.random.default_rng(first)
        part[:] = rows[:len(part)] * (1 + NOISE * random.standard_normal(part.shape, dtype=numpy.float32))

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(repeat, range(0, count, len(rows))))
    out.flush()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=1_000_000, help="of each set, at least its own")
    parser.add_argument("--only", action="append", choices=SETS, help="these sets")
    parser.add_argument("--k", type=int, help="clusters; else each set's own number")
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path, nargs="?", default=os.environ.get("PGKM_DATA"))
    options = parser.parse_args()
    if options.folder is None:
        parser.error("no folder, and no PGKM_DATA")
    options.out.mkdir(parents=True, exist_ok=True)
    for name in options.only or SETS:
        pattern, reader, k = SETS[name]
        found = sorted(pathlib.Path(options.folder).rglob(pattern), key=lambda path: path.stat().st_size)
        if not found:
            print(f"{name} is left out: there is no {pattern} in {options.folder}", file=sys.stderr)
            continue
        rows = reader(found[-1])
        path = options.out / f"{name}.npy"
        write(path, rows, max(options.rows, len(rows)))
        print("--file", f"{path}:{options.k or k}", end=" ")
    print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
