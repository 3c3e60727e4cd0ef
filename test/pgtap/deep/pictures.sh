#!/bin/bash
# Pictures as people see them: well-formed; each cluster has its mark, whoever draws them (CairoSVG, librsvg, a browser);
# all of it lies on the card, and no two texts over one another. And docs/img holds what this build draws for the demo.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
source "$here/scripts/lib/tap.sh"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$here"

query <<'SQL'
CREATE TABLE s1 (id integer GENERATED ALWAYS AS IDENTITY, x double precision, y double precision);
\copy s1 (x, y) FROM 'test/data/s1.csv' (FORMAT csv, HEADER)
CREATE TABLE iris (sepal_length real, sepal_width real, petal_length real, petal_width real, species text);
\copy iris FROM 'test/data/iris.csv' (FORMAT csv, HEADER)
CREATE TABLE blobs AS SELECT i % 40 AS label, 10 * sin(1.7 * (i % 40)) + sin(i * 1.1) AS x, 10 * cos(2.9 * (i % 40)) + cos(i * 1.9) AS y,
    -2e9 - i AS far, 3e149 * sin(i) AS "a huge <column> & its long name that has to be cut somewhere", 7 AS equal,
    -190 * i AS "a name that is about as long as the vertical axis is high"
FROM generate_series(1, 8000) AS i;
CREATE TABLE nulls AS SELECT CASE WHEN i % 3 > 0 THEN i % 17 END AS a, CASE WHEN i % 3 > 0 THEN i % 23 END AS b, i % 4 - 1 AS label
FROM generate_series(1, 600) AS i;
CREATE TABLE single AS SELECT -3.5 AS a, 1e15 AS b;
SQL
mkdir -p "$folder/build/demo"
(cd "$folder" && query -f "$here/scripts/lib/pictures.sql") >"$folder/log" 2>&1
is "$(cat "$folder/log")" "" "the pictures of the demo are drawn"
is "$(diff -rq "$here/docs/img" "$folder/build/demo" 2>&1 | sed "s|$folder/||")" "" "docs/img holds these pictures"

draw() { # NAME SELECT
    query -c "SELECT $2" >"$folder/build/demo/$1.svg"
}
for k in 2 5 12 40 120; do draw "clusters_$k" "kmeans_plot('blobs', '{x,y}', $k)"; done
draw marks "kmeans_plot('blobs', '{x,y}', 40, height => 1000)"
draw small "kmeans_plot('blobs', '{x,y}', 40, width => 320, height => 240)"
draw large "kmeans_plot('blobs', '{x,y}', 40, width => 1600, height => 900, sample => 20000)"
draw long_names "kmeans_plot('blobs', '{x,\"a huge <column> & its long name that has to be cut somewhere\"}', 3, title => repeat('long ', 40))"
draw wide "kmeans_plot('blobs', '{x,\"a name that is about as long as the vertical axis is high\"}', 3)"
draw far "kmeans_plot('blobs', '{far,equal}', 3)"
draw components "kmeans_plot('blobs', '{x,y,far}', 6, options => kmeans_options(standardize => true))"
draw histogram "kmeans_plot('blobs', '{x}', 12)"
draw one_bar "kmeans_plot('blobs', '{equal}', 1)"
draw labels "kmeans_plot('nulls', '{a,b}', label_column => 'label')"
draw single "kmeans_plot('single', '{a,b}', 1)"
draw sweep_wide "kmeans_sweep_plot('blobs', '{x,y}', 1, 70, options => kmeans_options(max_iter => 5), title => '')"
draw sweep_one "kmeans_sweep_plot('nulls', '{a,b}', 1, 1, width => 400)"
draw mixture "gmm_plot(gmm_fit('s1', '{x,y}', 9))"
draw mixture_once "gmm_plot(gmm_fit('single', '{a,b}', 1))"
draw profile_large "kmeans_profile_plot(kmeans_fit('blobs', '{x,y,far,equal,\"a huge <column> & its long name that has to be cut somewhere\"}', 40), height => 400)"
draw profile_small "kmeans_profile_plot(kmeans_fit('iris', '{sepal_length,petal_length,species}', 3), 320, 240)"
draw profile_many "kmeans_profile_plot(kmeans_model(array_agg(ARRAY(SELECT 1e4 * sin(i * j) FROM generate_series(1, 768) AS j)))) FROM generate_series(1, 70) AS i"
cd "$folder/build/demo"
is "$(python3 -c 'import glob, xml.dom.minidom as dom
for name in sorted(glob.glob("*.svg")): assert dom.parse(name).documentElement.tagName == "svg"' 2>&1)" "" "they are well-formed XML"

# drawn NAME COMMAND...: a mark for each cluster, in the legend and in the plot, where COMMAND SVG PNG draws. A mark of the legend
# shows its colour; of the dots, which lie upon each other, any.
drawn() {
    local name=$1 svg
    shift
    if ! "$@" single.svg single.png >/dev/null 2>&1 || ! python3 -c 'import PIL' 2>/dev/null; then
        number=$((number + 1))
        echo "ok $number - # skip no $name here that could draw them, or no Pillow to look at them"
        return
    fi
    for svg in clusters marks small labels histogram sweep mixture; do "$@" $svg.svg $svg.png >/dev/null 2>&1; done
    is "$(python3 - clusters marks small labels histogram sweep mixture <<'PYTHON' 2>&1
import re, sys, xml.etree.ElementTree as tree
from PIL import Image

def colour(mark):
    name = next(mark.get(key) for key in ("stroke", "fill") if mark.get(key) not in (None, "none"))
    return tuple(int(name[i:i + 2], 16) for i in (1, 3, 5))

def places(mark):
    return [(float(x), float(y)) for x, y in re.findall(r"M([0-9.]+) ([0-9.]+)", mark.get("d"))]

def near(image, x, y, reach, like):
    return sum(like(image.getpixel((int(x) + i, int(y) + j))) for i in range(-reach, reach + 1) for j in range(-reach, reach + 1)
               if 0 <= int(x) + i < image.width and 0 <= int(y) + j < image.height)

legend = plot = 0
for name in sys.argv[1:]:
    root = tree.parse(name + ".svg").getroot()
    picture = Image.open(name + ".png").convert("RGBA")
    image = Image.alpha_composite(Image.new("RGBA", picture.size, "white"), picture).convert("RGB")
    groups = [root] + [g for g in root.iter() if g.tag.endswith("}g")]
    for first, second in [pair for g in groups for pair in zip(list(g), list(g)[1:])]:
        if first.tag.endswith("}path") and second.tag.endswith("}text") and len(places(first)) == 1 and second.text:
            wanted = colour(first)
            legend += 1
            if near(image, *places(first)[0], 5, lambda pixel: max(abs(a - b) for a, b in zip(pixel, wanted)) < 70) < (6 if second.text == "none" else 20):
                print(f"{name}: cluster {second.text} has no mark in the legend")
    for mark in [mark for g in groups if g.get("fill-opacity") for mark in g]:
        plot += 1
        seen = sum(near(image, x, y, 1, lambda pixel: min(pixel) < 215) > 0 for x, y in places(mark))
        if seen < 0.4 * len(places(mark)): # some lie below numbers
            print(f"{name}: {seen} of {len(places(mark))} dots are drawn {mark.get('stroke')}")
print("a mark for each cluster" if legend > 70 and plot > 200 else f"only {legend} marks in the legend and {plot} in the plot")
PYTHON
)" "a mark for each cluster" "$name draws each cluster's mark"
    rm -f ./*.png
}
by_librsvg() { rsvg-convert "$1" -o "$2"; }
by_browser() {
    timeout 60 "$browser" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --user-data-dir="$folder/browser" --hide-scrollbars \
        --window-size=1000,1200 --screenshot="$2" "file://$PWD/$1"
}
browser=$(command -v chromium chromium-browser google-chrome | head -n 1)
drawn CairoSVG python3 -c 'import sys, cairosvg; cairosvg.svg2png(url=sys.argv[1], write_to=sys.argv[2])'
drawn librsvg by_librsvg
drawn browser by_browser

if [ -z "$browser" ]; then
    number=$((number + 1))
    echo "ok $number - # skip no chromium here that could draw them"
    echo 1..$number
    exit
fi
{
    echo '<!DOCTYPE html><meta charset="utf-8"><style>svg { font-family: "DejaVu Sans" }</style><body style="margin:0">'
    for svg in *.svg; do echo "<div id=\"${svg%.svg}\">$(cat "$svg")</div>"; done
    cat <<'HTML'
<pre id="faults"></pre>
<script>
const faults = [], wanted = document.querySelectorAll("svg").length;
for (const svg of document.querySelectorAll("svg")) {
    const name = svg.parentNode.id, card = svg.getBoundingClientRect();
    const marks = [...svg.querySelectorAll("path, rect, circle")].map(mark => mark.getBoundingClientRect());
    const texts = [...svg.querySelectorAll("text")].map(text => ({words: text.textContent, box: text.getBoundingClientRect()}));
    for (const box of marks.concat(texts.map(text => text.box)))
        if (box.left < card.left - 1 || box.right > card.right + 1 || box.top < card.top - 1 || box.bottom > card.bottom + 1)
            faults.push(`${name}: something is not on the card`);
    if (marks.length < 5 || texts.length < 6 || texts.some(text => text.box.width == 0 && text.words))
        faults.push(`${name}: something is missing`);
    // A line of text is two pixels higher than its letters.
    texts.forEach((a, i) => texts.slice(i + 1).forEach(b => {
        if (Math.min(a.box.right, b.box.right) - Math.max(a.box.left, b.box.left) > 1 &&
            Math.min(a.box.bottom, b.box.bottom) - Math.max(a.box.top, b.box.top) > 2)
            faults.push(`${name}: "${a.words}" over "${b.words}"`);
    }));
}
document.getElementById("faults").textContent = `<<${wanted} pictures: ${faults.join("; ")}>>`;
</script>
HTML
} >"$folder/pictures.html"
timeout 120 "$browser" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --user-data-dir="$folder/browser" \
    --dump-dom "file://$folder/pictures.html" >"$folder/dom" 2>/dev/null
is "$(grep -o '&lt;&lt;[0-9].*&gt;&gt;' "$folder/dom")" "&lt;&lt;$(ls ./*.svg | wc -l) pictures: &gt;&gt;" "a browser draws them with nothing over one another"
echo 1..$number
