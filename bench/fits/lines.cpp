// lines.cpp - the lines of the tables, and lines given on the command line.
#include "lines.hpp"

#include <algorithm>
#include <cstdio>
#include <stdexcept>

#include "rows.hpp"

namespace bench {

std::string Line::name() const
{
    return kind + "," + std::to_string(n) + "x" + std::to_string(d) + "," + std::to_string(k);
}

std::vector<Line> gpu_lines()
{
    std::vector<Line> lines;
    for (const char *text : {
             "blobs,65536x32,16",        "blobs,51200x34,32",        "blobs,494080x34,32",
             "uniform,494080x34,32",     "blobs,580000x54,64",       "blobs,134217728x4,4",
             "blobs,8388608x64,4",       "uniform,134217728x4,4",    "uniform,8388608x64,4",
             "blobs,4000000x2,400",      "blobs,4000000x8,100",      "lognormal,4000000x8,100",
             "uniform,4000000x2,400",    "uniform,4000000x8,100",    "blobs,4500000x41,64",
             "overlap,4500000x41,64",    "overlap,1000000x3,10000",  "blobs,134217728x4,64",
             "blobs,8388608x64,64",      "lognormal,134217728x4,64", "overlap,8388608x64,64",
             "uniform,134217728x4,64",   "uniform,8388608x64,64",    "blobs,1000000x128,1024",
             "overlap,1000000x128,1024", "uniform,1000000x128,1024", "overlap,10000000x16,1000",
             "blobs,1000000x768,1024",   "overlap,1000000x768,1024", "uniform,1000000x768,1024",
             "uniform,2000000x96,16384", "blobs,10000000x128,4096",  "uniform,10000000x128,4096",
         })
        lines.push_back(parse_line(text));
    return lines;
}

std::vector<Line> cpu_lines()
{
    std::vector<Line> lines;
    for (const char *text :
         {"blobs,1000000x2,100", "blobs,1000000x8,100", "lognormal,1000000x8,100", "blobs,1000000x34,32",
          "blobs,500000x54,64", "overlap,200000x32,256", "blobs,100000x128,256", "overlap,100000x128,256",
          "directions,50000x768,512", "directions,30000x1536,1000"})
        lines.push_back(parse_line(text));
    return lines;
}

Line parse_line(const std::string &text)
{
    char kind[32];
    long long n = 0;
    Line line;
    if (std::sscanf(text.c_str(), "%31[^,],%lldx%d,%d", kind, &n, &line.d, &line.k) != 4)
        throw std::runtime_error(text + " is not KIND,NxD,K");
    line.kind = kind;
    line.n = n;
    if (!is_kind(line.kind) || n < 1 || line.d < 1 || line.k < 1 || line.k > n)
        throw std::runtime_error(text + " has no such kind or shape");
    return line;
}

Line parse_file(const std::string &text)
{
    const std::size_t last = text.rfind(':');
    if (last == std::string::npos)
        throw std::runtime_error(text + " is not FILE.npy:K or FILE:NxD:K");
    Line line;
    line.k = std::stoi(text.substr(last + 1));
    line.file = text.substr(0, last);
    const std::size_t shape = line.file.rfind(':');
    long long n = 0;
    if (shape != std::string::npos && std::sscanf(line.file.c_str() + shape + 1, "%lldx%d", &n, &line.d) == 2) {
        line.n = n;
        line.file.resize(shape);
    } else {
        const FileShape header = npy_shape(line.file);
        line.n = header.n;
        line.d = header.d;
    }
    line.kind = line.file.substr(line.file.rfind('/') + 1);
    line.kind.resize(std::min(line.kind.size(), line.kind.find('.')));
    if (line.n < 1 || line.d < 1 || line.k < 1 || line.k > line.n)
        throw std::runtime_error(text + " has no such shape");
    return line;
}

double iteration_limit(const Line &line)
{
    const double n = static_cast<double>(line.n), d = line.d, k = line.k;
    return 1e3 * std::max({4.0 * n * d / 4.56e12, 2.0 * n * d * k / 700e12, 3.0 * n * k / 33e12});
}

} // namespace bench
