// measure.hpp - whole fits of loaded rows by the engine, by wall clock.
//
// A figure is the time of a phase of a job (PgkmJobProgress): from the call of the backend to its return, with all
// that it prepares. The backend's context stays open between the jobs of a line. Rows are loaded again for each, so
// that what a fit finds out about its rows counts; `again` leaves that out.
#pragma once

#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "engine/api.h"
#include "lines.hpp"
#include "rows.hpp"

namespace bench {

inline constexpr int most_iterations = 20;

struct Times {
    std::vector<double> ms;

    void add(double time) { ms.push_back(time); }
    int size() const { return static_cast<int>(ms.size()); }
    void keep_last(int count) { ms.erase(ms.begin(), ms.end() - count); }
    double median() const;
    double least() const;
    double most() const;
};

// Jobs of their own with default options: rows are loaded, seeded, fitted until they converge, labelled.
struct Whole {
    Times times, seeding;
    double inertia = 0.0;
    int iterations = 0;
};

struct Figures {
    std::string backend, plan; // what computed, and its strategies
    std::string forced;        // the one that was asked for, or empty
    double load_ms = 0.0;      // rows to the backend, and their statistics
    double first_ms = 0.0;     // the fit that comes first in a context
    Times fit;                 // 20 iterations, or until labels rest, from the first centroids
    Times one;                 // one iteration
    Times again;               // a fit of the same rows as the fit before it
    Times labels;              // labels at the end of the fit, and the sums of squares
    int iterations = 0;        // of the fit
    std::map<PgkmInit, Times> seedings;
    Whole whole; // without times: not wanted
};

struct Wanted {
    int repeats = 3;
    double most_ms = INFINITY; // of a fit: one that takes longer is run once
    std::uint64_t seed = 1;
    std::vector<PgkmInit> seedings;
    bool whole = false;
};

// What a job leaves behind.
struct Ended {
    PgkmJobProgress progress;
    PgkmResult figures; // its arrays are gone
};
Ended run(const PgkmRequest &request);
double ms_of(const Ended &ended, PgkmPhase phase);

Figures measure(const Line &line, const Rows &rows, const PgkmSettings &settings, const Wanted &wanted);

} // namespace bench
