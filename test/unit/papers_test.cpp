// What the benchmark of the papers reads and writes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "../../bench/papers/data.hpp"

namespace {

namespace fs = std::filesystem;
using bench::wanted;

class Papers : public testing::Test {
  protected:
    Papers()
    {
        wanted = {"", folder_.string(), 1.0, 10.0};
        bench::options.backend = bench::find_backend("cpu", nullptr);
        bench::options.threads = 1;
    }
    ~Papers() override { fs::remove_all(folder_); }

    void write(const std::string &name, const std::string &text) const { std::ofstream(folder_ / name) << text; }

    const fs::path folder_ = [] {
        std::string name = (fs::temp_directory_path() / "papers-XXXXXX").string();
        return fs::path(mkdtemp(name.data()));
    }();
};

TEST_F(Papers, TablesAreReadPackedAndRepeated)
{
    write("set.data", "1,tcp,0.5,no\n2,udp,-3,yes\n4,tcp,1e3,no\n");
    ASSERT_EQ(std::system(("gzip " + (folder_ / "set.data").string()).c_str()), 0);
    write("set.small", "1,2\n");
    bench::Table table("set.");
    ASSERT_FALSE(table.is_empty());
    const bench::Set rows = table.rows(2000);
    EXPECT_EQ(rows.n, 2000);
    ASSERT_EQ(rows.d, 3); // the class is left out
    const std::vector<float> expected = {1, 0, 0.5F, 2, 1, -3, 4, 0, 1000, 1, 0, 0.5F};
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), rows.values));
    EXPECT_EQ(rows.values[3 * 1999], 2.0F);

    bench::Table two("set.");
    two.drop({1});
    const bench::Set dropped = two.rows(2000);
    ASSERT_EQ(dropped.d, 2);
    EXPECT_EQ(std::vector<float>(dropped.values, dropped.values + 8),
              std::vector<float>({1, 0.5F, 2, -3, 4, 1000, 1, 0.5F}));
}

TEST_F(Papers, SetsThatAreNotThereAreLeftOut)
{
    EXPECT_TRUE(bench::Table("nothing").is_empty());
    write("broken.data", "1,2,a\n1,b\n");
    EXPECT_THROW(bench::Table("broken"), std::runtime_error);
}

// Of a backend that lacks a strategy, and of more clusters than there are different rows, no line is written.
TEST_F(Papers, LinesNameWhatRan)
{
    std::vector<float> values(3 * 5000);
    for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = static_cast<float>(i * 7919 % 101);
    const bench::Set set = {"made", values.data(), 5000, 3};
    testing::internal::CaptureStdout();
    bench::each("figure", set, {}, [](bench::Measured &rows) {
        rows.fit(4, 3);
        rows.assignment(4);
        rows.fit(5000, 3);
    });
    wanted.figures = "another";
    bench::each("figure", set, {}, [](bench::Measured &) { FAIL(); });
    const std::string text = testing::internal::GetCapturedStdout();
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 4) << text;
    EXPECT_TRUE(text.starts_with("figure,made,5000,3,4,cpu,")) << text;
    const std::string first = text.substr(0, text.find('\n'));
    EXPECT_NE(first.find(",1,direct,fit,"), std::string::npos) << text;
    EXPECT_TRUE(first.ends_with(",3,direct")) << text;
    EXPECT_NE(text.find(",1,auto,assignment,"), std::string::npos) << text;
}

} // namespace
