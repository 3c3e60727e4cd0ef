// report.cpp - prints a line's figures beside the least time and the goal.
#include "report.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace bench {
namespace {

// Three digits that count, as in docs/benchmarks.md; nothing for what is not known.
std::string figure(double value)
{
    if (std::isnan(value))
        return "";
    char text[64];
    std::snprintf(text, sizeof text, "%.*f", value < 10.0 ? (value < 1.0 ? 3 : 2) : value < 100.0 ? 1 : 0, value);
    return text;
}

// All digits, for the CSV.
std::string number(double value)
{
    char text[64];
    std::snprintf(text, sizeof text, "%.10g", value);
    return std::isnan(value) ? "" : text;
}

std::string spread(double least, double most)
{
    return figure(least) + ".." + figure(most);
}

std::string thousands(std::int64_t value)
{
    std::string text = std::to_string(value);
    for (int at = static_cast<int>(text.size()) - 3; at > 0; at -= 3)
        text.insert(static_cast<std::size_t>(at), 1, ',');
    return text;
}

const char *name_of(PgkmInit init)
{
    return init == PGKM_INIT_KMEANS_PLUS_PLUS  ? "k-means++"
           : init == PGKM_INIT_KMEANS_PARALLEL ? "k-means||"
                                               : "random";
}

// Twice the limit and 0.3 ms, or half of what flash-kmeans takes, whichever is less.
double goal_of(double limit, const std::vector<Beside> &peers)
{
    double goal = 2.0 * limit + 0.3;
    for (const Beside &peer : peers)
        if (peer.peer == "flash" && peer.fits)
            goal = std::min(goal, peer.fits->median / 2.0);
    return goal;
}

} // namespace

Report::Report(const std::string &csv, bool with_limit) : with_limit_(with_limit)
{
    if (csv.empty())
        return;
    csv_ = std::fopen(csv.c_str(), "w");
    if (csv_ == nullptr)
        throw std::runtime_error("cannot write " + csv);
}

Report::~Report()
{
    if (csv_ != nullptr)
        std::fclose(csv_);
}

std::vector<Report::Cell> Report::cells(const Line &line, const Figures &figures,
                                        const std::vector<Beside> &peers) const
{
    const double fit = figures.fit.median(), one = figures.one.median();
    const std::string shape =
        line.kind + " " + thousands(line.n) + " x " + std::to_string(line.d) + ", " + thousands(line.k);
    std::vector<Cell> cells = {
        {"kind", line.kind, 0},
        {"n", std::to_string(line.n), 0},
        {"d", std::to_string(line.d), 0},
        {"k", std::to_string(line.k), 0},
        {"backend", figures.backend, 0},
        {"plan", figures.plan, 0},
        {"forced", figures.forced, 0},
        {"repeats", std::to_string(figures.fit.size()), 0},
        {"data, n x d, k", figures.forced.empty() ? shape : "  " + figures.forced, -36},
        {"iterations", std::to_string(figures.iterations), 3},
        {"T20 ms", figure(fit), 8},
        {"T20 range", spread(figures.fit.least(), figures.fit.most()), 14},
        {"again ms", figure(figures.again.median()), 8},
        {"first ms", figure(figures.first_ms), 8},
        {"T1 ms", figure(one), 8},
        {"T1 range", spread(figures.one.least(), figures.one.most()), 14},
        {"labels ms", figure(figures.labels.median()), 8},
        {"load ms", figure(figures.load_ms), 8},
    };
    if (with_limit_) {
        const double limit = iteration_limit(line), goal = goal_of(limit * figures.iterations, peers);
        cells.push_back({"limit ms", figure(limit * figures.iterations), 8});
        cells.push_back({"goal ms", figure(goal), 8});
        cells.push_back({"met", fit <= goal ? "yes" : "no", 3});
        cells.push_back({"T1 goal ms", figure(2.0 * limit + 0.3), 8});
        cells.push_back({"T1 met", one <= 2.0 * limit + 0.3 ? "yes" : "no", 3});
    }
    for (const Beside &peer : peers) {
        const Peer::Fits fits = peer.fits.value_or(Peer::Fits{NAN, NAN, NAN, NAN, NAN});
        cells.push_back({peer.peer + " T20 ms", figure(fits.median), 8});
        cells.push_back({peer.peer + " T20 range", peer.fits ? spread(fits.least, fits.most) : "", 0});
        cells.push_back({peer.peer + " / T20", figure(fits.median / fit), 8});
        cells.push_back({peer.peer + " T1 ms", figure(fits.one), 8});
        cells.push_back({peer.peer + " T1 missed", figure(fits.missed), 0});
    }
    for (const auto &[init, times] : figures.seedings) {
        cells.push_back({std::string(name_of(init)) + " ms", figure(times.median()), 8});
        cells.push_back({std::string(name_of(init)) + " range", spread(times.least(), times.most()), 0});
    }
    if (!figures.whole.times.ms.empty()) {
        const double whole = figures.whole.times.median();
        cells.push_back({"whole ms", figure(whole), 8});
        cells.push_back({"of it seeding", figure(figures.whole.seeding.median()), 8});
        cells.push_back({"whole range", spread(figures.whole.times.least(), figures.whole.times.most()), 0});
        cells.push_back({"whole iterations", number(figures.whole.iterations), 0});
        cells.push_back({"whole inertia", number(figures.whole.inertia), 0});
        for (const Beside &peer : peers) {
            const Peer::Whole theirs = peer.whole.value_or(Peer::Whole{NAN, NAN, NAN});
            cells.push_back({peer.peer + " whole ms", figure(theirs.ms), 8});
            cells.push_back({peer.peer + " / whole", figure(theirs.ms / whole), 8});
            cells.push_back({peer.peer + " whole iterations", number(theirs.iterations), 0});
            cells.push_back({peer.peer + " whole inertia", number(theirs.inertia), 0});
        }
    }
    return cells;
}

void Report::print(const Line &line, const Figures &figures, const std::vector<Beside> &peers)
{
    const std::vector<Cell> row = cells(line, figures, peers);
    const auto write = [&](std::string Cell::*part) {
        for (const Cell &cell : row)
            if (cell.width < 0)
                std::printf("%-*s", -cell.width, (cell.*part).c_str());
            else if (cell.width > 0)
                std::printf("  %*s", std::max(cell.width, static_cast<int>(cell.name.size())), (cell.*part).c_str());
        std::printf("\n");
        std::fflush(stdout);
        if (csv_ == nullptr)
            return;
        for (std::size_t i = 0; i < row.size(); ++i)
            std::fprintf(csv_, "%s\"%s\"", i == 0 ? "" : ",", (row[i].*part).c_str());
        std::fprintf(csv_, "\n");
        std::fflush(csv_);
    };
    if (!headed_)
        write(&Cell::name);
    headed_ = true;
    write(&Cell::value);
}

} // namespace bench
