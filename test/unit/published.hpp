// published.hpp - reads the published data sets on which the quality of the results is judged.
//
// S1 and iris lie in test/data. The larger ones are taken from the folder PGKM_DATA, by
// default ../shared/data beside the checkout; tests skip what is not there.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace published {

struct Table {
    std::vector<double> values; // row-major
    std::int32_t columns = 0;

    std::int64_t rows() const { return columns == 0 ? 0 : static_cast<std::int64_t>(values.size()) / columns; }
};

inline const std::string &checkout()
{
    static const std::string path = PGKM_CHECKOUT; // from the build; __FILE__ may be relative to the build folder
    return path;
}

inline std::string folder()
{
    const char *set = std::getenv("PGKM_DATA");
    return set != nullptr ? set : checkout() + "../shared/data";
}

inline bool exists(const std::string &path)
{
    return std::ifstream(path).good();
}

// Numbers separated by blanks or commas, one row a line; `columns` of each, the rest of the
// line ignored. Lines that do not begin with so many numbers are no data.
inline Table parse(std::istream &in, std::int32_t columns)
{
    Table table;
    table.columns = columns;
    for (std::string line; std::getline(in, line);) {
        for (char &c : line)
            if (c == ',')
                c = ' ';
        std::istringstream fields(line);
        std::vector<double> row(static_cast<std::size_t>(columns));
        bool complete = true;
        for (double &value : row)
            complete = complete && static_cast<bool>(fields >> value);
        if (complete)
            table.values.insert(table.values.end(), row.begin(), row.end());
    }
    return table;
}

// A file, unpacked by xz when its name says so; empty when it cannot be had.
inline Table read(const std::string &path, std::int32_t columns)
{
    if (!exists(path))
        return {};
    if (!path.ends_with(".xz")) {
        std::ifstream in(path);
        return parse(in, columns);
    }
    FILE *pipe = popen(("xz -dc '" + path + "'").c_str(), "r");
    if (pipe == nullptr)
        return {};
    std::string text;
    char buffer[65536];
    for (std::size_t got; (got = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;)
        text.append(buffer, got);
    if (pclose(pipe) != 0)
        return {};
    std::istringstream in(text);
    return parse(in, columns);
}

// Sums of squared errors after Lloyd's iterations from the true centres, by set.
inline std::map<std::string, double> reference_sse()
{
    std::map<std::string, double> result;
    std::ifstream in(folder() + "/fraenti/reference_sse.csv");
    std::string line;
    std::getline(in, line); // set,n,d,k,start,sse_at_gt,sse_of_partition,iterations,sse_after_lloyd,...
    while (std::getline(in, line)) {
        std::istringstream fields(line);
        std::vector<std::string> parts;
        for (std::string part; std::getline(fields, part, ',');)
            parts.push_back(part);
        if (parts.size() > 8 && !parts[8].empty())
            result[parts[0]] = std::stod(parts[8]);
    }
    return result;
}

} // namespace published
