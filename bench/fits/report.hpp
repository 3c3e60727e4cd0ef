// report.hpp - the figures of a line: aligned on the terminal, and all of them as CSV.
#pragma once

#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "measure.hpp"
#include "peer.hpp"

namespace bench {

// What a peer took on a line, as far as it answered.
struct Beside {
    std::string peer;
    std::optional<Peer::Fits> fits;
    std::optional<Peer::Whole> whole;
};

class Report {
  public:
    // `csv`: a file to write, or empty. `with_limit`: the goals of an H200 count.
    Report(const std::string &csv, bool with_limit);
    ~Report();
    Report(const Report &) = delete;
    Report &operator=(const Report &) = delete;

    void print(const Line &line, const Figures &figures, const std::vector<Beside> &peers);

  private:
    struct Cell {
        std::string name, value;
        int width; // on the terminal; 0: for the CSV alone
    };
    std::vector<Cell> cells(const Line &line, const Figures &figures, const std::vector<Beside> &peers) const;

    FILE *csv_ = nullptr;
    bool with_limit_, headed_ = false;
};

} // namespace bench
