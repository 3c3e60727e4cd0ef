// data.hpp - the rows that the works measured with: drawn as bench/fits draws them, or read from files.
#pragma once

#include <string>
#include <vector>

#include "../fits/rows.hpp"
#include "measure.hpp"

namespace bench {

// n x d rows of a kind of rows.hpp (fits), times the scale that is wanted.
class Drawn {
  public:
    Drawn(const std::string &kind, std::int64_t n, std::int32_t d);
    Set set() const;

  private:
    Line line_;
    Rows rows_;
};

// A set of comma-separated values without its last column, the class. Text becomes a number in the order in which it
// first appears. Empty, with a message, where the folder that is wanted does not hold it.
class Table {
  public:
    // `prefix`: of the name of its file, which may be packed (.gz, .xz); of several the largest.
    explicit Table(const std::string &prefix);
    bool is_empty() const { return values_.empty(); }
    // The first of n rows; the set is repeated to so many, times the scale that is wanted.
    Set rows(std::int64_t n);
    // Leaves columns out, before any rows are asked for.
    void drop(const std::vector<std::int32_t> &columns);

  private:
    std::string name_;
    std::vector<float> values_;
    std::int32_t d_ = 0;
    std::size_t own_ = 0; // values that are not repeated
};

} // namespace bench
