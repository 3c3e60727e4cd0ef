#!/usr/bin/env python3
"""Draws the pictures of docs/papers.md from the CSV files beside them.

    plot.py [FOLDER]     docs/papers: *-cuda.csv and *-cpu.csv by `run`, authors.csv with the works' own numbers

A line that is drawn through is ours on the GPU, a dotted one ours on the CPU, a dashed one the authors'. A figure whose
lines are missing is left out, with a message.
"""
import collections
import csv
import html
import math
import pathlib
import re
import sys

COLOURS = ["#1b6ca8", "#d1495b", "#2e8b57", "#8e5ea2", "#c77d0a", "#00838f", "#6d4c41", "#ad1457"]
GREYS = ["#444444", "#777777", "#999999", "#5b6b7b", "#8a7b6b", "#6b8a7b"]
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760, 360, 66, 270, 34, 48

# name: of the file; figure, what: patterns (what None: any but fits by forced strategies); k: None for any; x, y: of a
# row; log: whether x and y are on a logarithmic axis
Picture = collections.namedtuple("Picture", "name title figure what k x y x_name y_name log")


def total(iterations, rows=None):
    """Milliseconds of so many iterations, of so many rows where the CPU had fewer."""
    return lambda row: row["ms"] / row["iterations"] * iterations * (rows / row["n"] if rows else 1.0)


def rate(row):
    """GB/s of rows read once an iteration."""
    return row["n"] * row["d"] * 4e-6 * row["iterations"] / row["ms"]


def chunk(row):
    return float(row["figure"].rsplit("-", 1)[1])


def megabytes(row):
    return row["n"] * row["d"] * 4 / 2**20


def column(name):
    return lambda row: row[name]


D, K, N = column("d"), column("k"), column("n")
MS50, MS100 = "ms, 50 iterations", "ms, 100 iterations"
PICTURES = [
    Picture("aggarwal-4.1", "Aggarwal, tables 4.1 and 4.2: assignment, n = 1,000,000, k = 100", "aggarwal-4.1",
            "find|assignment", None, D, total(50, 1000000), "d", MS50, (False, True)),
    Picture("aggarwal-6.1", "Aggarwal, table 6.1: KDD 99 x 41, k = 64", "aggarwal-6.1", "fit", None, N, total(50), "n",
            MS50, (False, True)),
    Picture("aggarwal-6.2", "Aggarwal, table 6.2: KDD 99, n = 2,000,000", "aggarwal-6.2", "fit", None, K,
            total(50, 2000000), "k", MS50, (False, True)),
    Picture("aggarwal-6.3", "Aggarwal, table 6.3: Covertype x 54, k = 64", "aggarwal-6.3", "fit", None, N, total(50),
            "n", MS50, (False, True)),
    Picture("aggarwal-6.4", "Aggarwal, table 6.4: Covertype, n = 500,000", "aggarwal-6.4", "fit", None, K,
            total(50, 500000), "k", MS50, (False, True)),
    Picture("aggarwal-6.5", "Aggarwal, table 6.5: n = 51,200, k = 32", "aggarwal-6.5", "fit", None, D,
            total(100, 51200), "d", MS100, (False, True)),
    Picture("aggarwal-2.2", "Aggarwal, figure 2.2: 5,749,132 x 9, k = 2", "aggarwal-f2.2", "fit", None,
            column("threads"), total(100), "threads", MS100, (True, True)),
    Picture("li-2", "Li, table 2: n = 1,000,000, k = 100, by d", "li-2", None, None, D, total(50, 1000000), "d", MS50,
            (False, True)),
    Picture("li-3", "Li, table 3: n = 1,000,000, d = 4, by k", "li-3", None, None, K, total(50, 1000000), "k", MS50,
            (False, True)),
    Picture("li-4", "Li, table 4: d = 4, k = 100, by n", "li-4", None, None, N, total(50), "n", MS50, (True, True)),
    Picture("li-7", "Li, table 7: KDD 99, 51,200 x 34, by k", "li-7", "fit", None, K, total(100, 51200), "k", MS100,
            (True, True)),
    Picture("li-9", "Li, table 9: n = 51,200, k = 32, by d", "li-9", "fit", None, D, total(100, 51200), "d", MS100,
            (False, True)),
    Picture("li-limit", "Li, Algorithm 3 or 4: n = 1,000,000, k = 100", "li-limit", "fit", None, D,
            total(50, 1000000), "d", MS50, (False, True)),
    Picture("li-10", "Li, table 10, figure 5: rows that the device does not hold, d = 4, k = 100", "li-10", "fit", None,
            megabytes, total(1), "MB of rows", "ms, 1 iteration", (True, True)),
    Picture("li-11", "Li, table 11, figure 5: rows that the device does not hold, d = 34, k = 32", "li-11", "fit", None,
            megabytes, total(1), "MB of rows", "ms, 1 iteration", (True, True)),
    Picture("lutz-6-4", "Lutz, figure 6: feature sum, k = 4", "lutz-6", "feature_sum", 4, D, rate, "d", "GB/s",
            (True, True)),
    Picture("lutz-6-64", "Lutz, figure 6: feature sum, k = 64", "lutz-6", "feature_sum", 64, D, rate, "d", "GB/s",
            (True, True)),
    Picture("lutz-7", "Lutz, figure 7: mass sum", "lutz-7", "mass_sum", None, K, column("ms"), "k", "ms", (True, True)),
    Picture("lutz-10", "Lutz, figure 10: execution, d = 4", "lutz-10", "fit", None, K, rate, "k", "GB/s", (True, True)),
    Picture("lutz-11", "Lutz, figure 11: execution, k = 4", "lutz-11", "fit", None, D, rate, "d", "GB/s", (True, True)),
    Picture("lutz-12", "Lutz, figure 12: rows that are streamed, d = 4, k = 4", "lutz-12-.*", "fit", None, chunk, rate,
            "MB of a chunk", "GB/s", (True, False)),
    Picture("lutz-13-4", "Lutz, figure 13: rows that are streamed, k = 4", "lutz-13", "fit", 4, megabytes, rate,
            "MB of rows", "GB/s", (True, False)),
    Picture("lutz-13-64", "Lutz, figure 13: rows that are streamed, k = 64", "lutz-13", "fit", 64, megabytes, rate,
            "MB of rows", "GB/s", (True, False)),
]


def read(folder):
    rows = []
    for path in sorted(folder.glob("*-c*.csv")):
        with open(path, newline="") as file:
            for row in csv.DictReader(file):
                if "figure" not in row:  # of bench/reduce: docs/papers.md has it as a table
                    break
                for name in ("n", "d", "k", "threads", "ms", "iterations"):
                    row[name] = float(row[name])
                rows.append(row)
    return rows


def device(row):
    if row["backend"] == "cpu":
        return f"CPU, {row['threads']:.0f} thread" + ("s" if row["threads"] > 1 else "")
    return re.sub(r"\W.*$", "", row["device"].replace("NVIDIA ", ""))


def strategies(rows):
    """Short names of the series: what forced ones share is left out, and of several names the later ones."""
    words = {row["by"]: row["by"].split() for row in rows}
    forced = [names for by, names in words.items() if by not in ("auto", "direct")]
    if len(forced) == 1:
        return {by: "the work's" if names in forced else by for by, names in words.items()}
    shared = set.intersection(*map(set, forced)) if forced else set()
    short = {by: " + ".join(name for name in names if name not in shared) or by for by, names in words.items()}
    return {by: text if len(text) < 30 else text.split(" +")[0] for by, text in short.items()}


def series_of(picture, rows, authors):
    mine = [row for row in rows if re.fullmatch(picture.figure, row["figure"]) and row["ms"] > 0
            and (row["backend"] != "cpu" or row["by"] == "direct" and picture.x not in (N, megabytes))
            and (picture.what is None or re.fullmatch(picture.what, row["what"]))
            and (picture.k is None or row["k"] == picture.k)
            and not (picture.what is None and row["what"] == "fit" and row["by"] not in ("auto", "direct"))]
    short = strategies(mine)
    series = collections.OrderedDict()
    for row in mine:
        what = "" if picture.what or row["what"] == "fit" else ", " + row["what"].replace("_", " ")
        style = "cpu" if row["backend"] == "cpu" else "gpu"
        label = f"{device(row)}: {short[row['by']]}{what}"
        series.setdefault((label, style), []).append((picture.x(row), picture.y(row)))
    for row in authors:
        if row["figure"] == picture.figure:
            series.setdefault((row["series"], "authors"), []).append((float(row["x"]), float(row["ms"])))
    return {key: sorted(points) for key, points in series.items()}


def ticks(least, most, log):
    if log and most / least > 8:
        powers = range(math.floor(math.log10(least)), math.ceil(math.log10(most)) + 1)
        steps = (1,) if len(powers) > 3 else (1, 2, 5)
        return [step * 10.0**power for power in powers for step in steps if least <= step * 10.0**power <= most]
    step = 10.0**math.floor(math.log10(most - least))
    step = next(step * factor for factor in (0.1, 0.2, 0.5, 1, 2, 5) if (most - least) / (step * factor) <= 8)
    return [step * i for i in range(math.ceil(least / step), math.floor(most / step) + 1) if step * i > 0 or not log]


def number(value):
    if value >= 1e6:
        return f"{value / 1e6:g}M"
    return f"{value / 1e3:g}k" if value >= 1e4 else f"{value:.4g}"


class Axis:
    def __init__(self, values, log, begin, end):
        least, most = min(values), max(values)
        if not log:
            least = 0.0 if least > 0 else least
            most *= 1.05
        elif most / least < 1.2:
            least, most = least / 2, most * 2
        self.log, self.begin, self.end, self.least, self.most = log, begin, end, least, most
        margin = 0.03 * (self.place(most) - self.place(least))
        self.low, self.high = self.place(least) - (margin if log else 0), self.place(most) + margin

    def place(self, value):
        return math.log10(value) if self.log else value

    def at(self, value):
        return self.begin + (self.place(value) - self.low) / (self.high - self.low) * (self.end - self.begin)


def text(x, y, words, size=12, anchor="start", more=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" {more}>{html.escape(words)}</text>'


def draw(picture, series):
    points = [point for each in series.values() for point in each]
    x = Axis([p[0] for p in points], picture.log[0], LEFT, WIDTH - RIGHT)
    y = Axis([p[1] for p in points], picture.log[1], HEIGHT - BOTTOM, TOP)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
           f'fill="#222222"><title>{html.escape(picture.title)}</title><rect width="100%" height="100%" fill="white"/>',
           text(LEFT, 20, picture.title, 14)]
    places = sorted({point[0] for point in points})
    for value in places if x.log and len(places) < 11 else ticks(x.least, x.most, x.log):
        out.append(f'<path d="M{x.at(value):.1f} {TOP}V{HEIGHT - BOTTOM}" stroke="#e4e4e4"/>')
        out.append(text(x.at(value), HEIGHT - BOTTOM + 16, number(value), 11, "middle"))
    for value in ticks(y.least, y.most, y.log):
        out.append(f'<path d="M{LEFT} {y.at(value):.1f}H{WIDTH - RIGHT}" stroke="#e4e4e4"/>')
        out.append(text(LEFT - 6, y.at(value) + 4, number(value), 11, "end"))
    out.append(f'<path d="M{LEFT} {TOP}V{HEIGHT - BOTTOM}H{WIDTH - RIGHT}" fill="none" stroke="#888888"/>')
    out.append(text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, picture.x_name, 12, "middle"))
    middle = (TOP + HEIGHT - BOTTOM) / 2
    out.append(text(14, middle, picture.y_name, 12, "middle", f'transform="rotate(-90 14 {middle:.1f})"'))
    used = collections.Counter()
    for i, ((label, style), values) in enumerate(series.items()):
        colours = GREYS if style == "authors" else COLOURS
        colour = colours[used[style == "authors"] % len(colours)]
        used[style == "authors"] += 1
        dash = {"gpu": "", "cpu": ' stroke-dasharray="2 3"', "authors": ' stroke-dasharray="7 4"'}[style]
        line = f'fill="none" stroke="{colour}" stroke-width="2"{dash}'
        path = "L".join(f"{x.at(a):.1f} {y.at(b):.1f}" for a, b in values)
        out.append(f'<path d="M{path}" {line}/>')
        out += [f'<circle cx="{x.at(a):.1f}" cy="{y.at(b):.1f}" r="2.5" fill="{colour}"/>' for a, b in values]
        at = TOP + 8 + 17 * i
        out.append(f'<path d="M{WIDTH - RIGHT + 14} {at}h26" {line}/>')
        out.append(text(WIDTH - RIGHT + 46, at + 4, label, 11))
    return "\n".join(out) + "\n</svg>\n"


def main():
    here = pathlib.Path(__file__).resolve().parents[2]
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else here / "docs" / "papers"
    rows = read(folder)
    with open(folder / "authors.csv", newline="") as file:
        authors = list(csv.DictReader(file))
    for picture in PICTURES:
        series = series_of(picture, rows, authors)
        if any(style != "authors" and len(points) > 1 for (_, style), points in series.items()):
            (folder / f"{picture.name}.svg").write_text(draw(picture, series))
        else:
            print(f"{picture.name} is left out: nothing was measured", file=sys.stderr)


if __name__ == "__main__":
    main()
