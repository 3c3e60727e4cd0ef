// peer.hpp - another library beside us: a Python process (peers.py) that maps the same rows and first centroids.
#pragma once

#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "lines.hpp"

namespace bench {

class Peer {
  public:
    // Starts the process, which inherits `rows`, the file of Rows; `threads` 0: as many as it likes.
    Peer(const std::string &name, const std::string &script, int rows, int threads);
    ~Peer();
    Peer(const Peer &) = delete;
    Peer &operator=(const Peer &) = delete;

    const std::string &name() const { return name_; }
    const std::string &version() const { return version_; } // empty: it cannot be had; it has said why

    // Fits of the same rows from the same centroids.
    struct Fits {
        double median, least, most; // milliseconds of `iterations` iterations
        double one;                 // of one
        double missed;              // share of labels that are not the nearest centroid's; NaN: not asked
    };
    std::optional<Fits> fit(const Line &line, int iterations, int repeats);

    // A fit as its users write it, with its own first centroids and its own end.
    struct Whole {
        double ms, inertia, iterations;
    };
    std::optional<Whole> whole(const Line &line, int repeats);

  private:
    std::vector<double> ask(const std::string &question, std::size_t answers);

    std::string name_, version_;
    int child_ = -1;
    FILE *to_ = nullptr, *from_ = nullptr;
};

} // namespace bench
