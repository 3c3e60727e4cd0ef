// subjects.hpp - what is under test: a backend table with one set of forced strategies.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "support/sanitized.hpp"

namespace conformance {

struct Subject {
    std::string name; // letters, digits and underscores
    const PgkmBackend *table;
    std::int32_t device; // ordinal for open()
    PgkmTuning tuning;   // its strings live as long as the program
    std::uint64_t device_memory_limit;

    // Whether seeding and statistics could differ from those of an earlier subject.
    bool seeds_differently;
    // Whether it is told to use a set of instructions that is not the processor's best.
    bool has_lesser_set = false;
};

using pgkm::test::sanitized;

// Every strategy of the CPU table, that table behind the service, and every strategy of the
// plugin that PGKM_PLUGIN names when it has a usable device.
const std::vector<Subject> &all_subjects();

// The reference: what all of them are compared with.
const Subject &reference_subject();

// Each table once, nothing forced.
std::vector<Subject> plain_subjects();

// Why the plugin is not among the subjects; empty when it is.
const std::string &plugin_absence();

} // namespace conformance
