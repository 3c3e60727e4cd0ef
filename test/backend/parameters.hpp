// parameters.hpp - the product of subjects and cases, with names that tell both.
#pragma once

#include <ostream>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "cases.hpp"
#include "subjects.hpp"

namespace conformance {

// What GoogleTest prints of a failed test's parameters.
inline void PrintTo(const Subject &subject, std::ostream *out)
{
    *out << subject.name;
}
inline void PrintTo(const Case *data, std::ostream *out)
{
    *out << data->name;
}

using Parameter = std::tuple<Subject, const Case *>;

// All cases whose one assignment is no more work than this: the reference is slow.
inline std::vector<const Case *> case_list(std::int64_t most_work = INT64_MAX)
{
    std::vector<const Case *> list;
    for (const Case &one : all_cases())
        if (one.work() <= most_work)
            list.push_back(&one);
    return list;
}

inline std::vector<Subject> seeding_subjects()
{
    std::vector<Subject> list;
    for (const Subject &subject : all_subjects())
        if (subject.seeds_differently)
            list.push_back(subject);
    return list;
}

// Subjects x cases. Sanitized, magnitudes are no reason to run another set of instructions (README.md).
inline std::vector<Parameter> parameters(const std::vector<Subject> &subjects, const std::vector<const Case *> &cases)
{
    std::vector<Parameter> list;
    for (const Subject &subject : subjects)
        for (const Case *one : cases)
            if (!sanitized || !one->is_of_magnitudes || !subject.has_lesser_set)
                list.emplace_back(subject, one);
    return list;
}

inline std::string parameter_name(const testing::TestParamInfo<Parameter> &info)
{
    return std::get<0>(info.param).name + "__" + std::get<1>(info.param)->name;
}

inline std::string subject_name(const testing::TestParamInfo<Subject> &info)
{
    return info.param.name;
}

// A test that runs for every subject on every case.
class Conformance : public testing::TestWithParam<Parameter> {
  protected:
    const Subject &subject() const { return std::get<0>(GetParam()); }
    const Case &data() const { return *std::get<1>(GetParam()); }
};

// One suite over subjects x cases.
#define PGKM_CONFORMANCE(SUITE, SUBJECTS, CASES) \
    INSTANTIATE_TEST_SUITE_P(All, SUITE, testing::ValuesIn(parameters(SUBJECTS, CASES)), parameter_name)

} // namespace conformance
