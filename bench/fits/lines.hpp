// lines.hpp - what is measured: rows of some kind, their shape, the number of clusters.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace bench {

struct Line {
    std::string kind; // one of rows.hpp, or the file's name without folder and ending
    std::int64_t n;
    std::int32_t d, k;
    std::string file; // empty: the rows are drawn

    std::string name() const; // "uniform,1000000x128,1024"
};

// The lines of the design's table, for a GPU, and those of a CPU.
std::vector<Line> gpu_lines();
std::vector<Line> cpu_lines();

// KIND,NxD,K.
Line parse_line(const std::string &text);
// FILE.npy:K (float32, two dimensions, in C order), or FILE:NxD:K (float32 without a header).
Line parse_file(const std::string &text);

// The least milliseconds that one iteration can take on an H200: the greatest of the bytes' way at 4.56 TB/s,
// 2 n d k operations at 700 TFLOP/s (FP16 on the tensor cores), and three instructions a pair at 33 T/s.
double iteration_limit(const Line &line);

} // namespace bench
