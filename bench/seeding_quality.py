#!/usr/bin/env python3
"""Mean inertia of scikit-learn's KMeans with greedy k-means++, one start a seed, over the sets of
test/unit/seed_quality_test.cpp: the figures that stand there.

    python3 bench/seeding_quality.py [SEEDS]        300 by default
"""
import os
import sys

import numpy
from sklearn import __version__
from sklearn.cluster import KMeans

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "test", "data")


class Draws:
    """The numbers of the test's generator, splitmix64."""

    def __init__(self, seed):
        self.state = seed

    def uniform(self):
        mask = (1 << 64) - 1
        self.state = (self.state + 0x9E3779B97F4A7C15) & mask
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        return ((z ^ (z >> 31)) >> 11) * 2.0**-53

    def normal(self):
        return sum((self.uniform() for _ in range(12)), 0.0) - 6.0

    def clouds(self, n, d, centres, apart, shares=None):
        middle = [[apart * self.normal() for _ in range(d)] for _ in range(centres)]
        rows = []
        for _ in range(n):
            u = self.uniform()
            which = int(u * centres) if shares is None else sum(u >= s for s in shares)
            rows.append([m + self.normal() for m in middle[which]])
        return numpy.array(rows)


def read(name, columns):
    return numpy.genfromtxt(os.path.join(FOLDER, name), delimiter=",", skip_header=1)[:, :columns]


def sets():
    yield "iris", read("iris.csv", 4), 10
    yield "s1", read("s1.csv", 2), 15
    yield "clouds", Draws(1).clouds(2000, 8, 20, 3.0), 20
    yield "overlap", Draws(2).clouds(2000, 16, 32, 1.0), 32
    draws = Draws(3)
    yield "lognormal", numpy.array([[numpy.exp(draws.normal()) for _ in range(4)] for _ in range(3000)]), 25
    draws = Draws(4)
    yield "uniform", numpy.array([[draws.uniform() for _ in range(2)] for _ in range(3000)]), 50
    draws = Draws(5)
    yield "repeated", numpy.array([[float(int(12 * draws.uniform())) for _ in range(2)] for _ in range(2000)]), 30
    yield "unequal", Draws(6).clouds(3000, 3, 3, 6.0, (0.9, 0.99)), 12


def main():
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    print(f"scikit-learn {__version__}, {seeds} seeds")
    for name, rows, k in sets():
        inertias = [KMeans(k, n_init=1, random_state=seed).fit(rows).inertia_ for seed in range(seeds)]
        error = numpy.std(inertias) / numpy.sqrt(seeds) / numpy.mean(inertias)
        print(f"{name:10} {len(rows):5} x {rows.shape[1]:2}, k {k:2}: {numpy.mean(inertias):.8g} +- {100 * error:.2f} %", flush=True)


if __name__ == "__main__":
    main()
