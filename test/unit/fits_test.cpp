// What the benchmark of whole fits compares: its lines, their limits, and their rows.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include <unistd.h>

#include "../../bench/fits/lines.hpp"
#include "../../bench/fits/rows.hpp"

namespace {

using bench::Line;
using bench::parse_line;

TEST(Fits, LimitIsTheGreatestOfBytesProductsAndPairs)
{
    EXPECT_NEAR(17 * bench::iteration_limit(parse_line("blobs,134217728x4,4")), 8.01, 0.005);     // bytes
    EXPECT_NEAR(20 * bench::iteration_limit(parse_line("uniform,1000000x768,1024")), 44.9, 0.05); // products
    EXPECT_NEAR(20 * bench::iteration_limit(parse_line("overlap,10000000x16,1000")), 18.2, 0.05); // pairs
}

TEST(Fits, LinesDifferAndTheirNamesAreRead)
{
    std::set<std::string> names;
    for (const Line &line : bench::gpu_lines()) {
        EXPECT_EQ(parse_line(line.name()).name(), line.name());
        names.insert(line.name());
    }
    EXPECT_EQ(names.size(), 33U);
    for (const char *text : {"blobs,10x2", "nothing,10x2,3", "blobs,10x2,11", "blobs,10x0,3"})
        EXPECT_THROW(parse_line(text), std::exception) << text;
}

TEST(Fits, RowsDependOnTheirNumbersAndCentroidsAreDifferentRows)
{
    for (const char *kind : {"blobs", "uniform", "overlap", "lognormal", "directions"}) {
        bench::Rows few, many;
        few.fill(parse_line(std::string(kind) + ",50x3,50"), 7);
        many.fill(parse_line(std::string(kind) + ",5000x3,2"), 7);
        EXPECT_TRUE(std::equal(few.values(), few.values() + 150, many.values())) << kind;
        const auto sorted = [](const float *first) {
            std::vector<std::vector<float>> rows;
            for (int i = 0; i < 50; ++i)
                rows.emplace_back(first + 3 * i, first + 3 * i + 3);
            std::sort(rows.begin(), rows.end());
            return rows;
        };
        EXPECT_EQ(sorted(few.centroids()), sorted(few.values())) << kind; // all 50, each once
    }
}

TEST(Fits, FilesAreReadWithAndWithoutAHeader)
{
    char path[] = "/tmp/fits_testXXXXXX.npy";
    close(mkstemps(path, 4));
    const std::vector<float> values = {1, 2, 3, 4, 5, 6};
    std::string head = "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }";
    head.resize(118, ' ');
    std::ofstream file(path, std::ios::binary);
    file.write("\x93NUMPY\x01\0\x76\0", 10) << head;
    file.write(reinterpret_cast<const char *>(values.data()), 24);
    file.close();

    bench::Rows rows;
    const Line line = bench::parse_file(std::string(path) + ":2");
    EXPECT_EQ(line.n, 3);
    EXPECT_EQ(line.d, 2);
    rows.fill(line, 1);
    EXPECT_TRUE(std::equal(values.begin(), values.end(), rows.values()));

    const std::string raw = std::string(path) + ".f32";
    std::ofstream(raw, std::ios::binary).write(reinterpret_cast<const char *>(values.data()), 24);
    rows.fill(bench::parse_file(raw + ":2x3:1"), 1);
    EXPECT_TRUE(std::equal(values.begin(), values.end(), rows.values()));
    EXPECT_THROW(rows.fill(bench::parse_file(raw + ":3x3:1"), 1), std::exception);
    EXPECT_THROW(bench::parse_file(raw + ":1"), std::exception); // no header
    unlink(path);
    unlink(raw.c_str());
}

} // namespace
