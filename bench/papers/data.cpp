// data.cpp - draws rows, or reads them from a packed table.
#include "data.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <stdexcept>
#include <string_view>

namespace bench {
namespace {

namespace fs = std::filesystem;

std::int64_t scaled(std::int64_t n)
{
    return std::max<std::int64_t>(1024, std::llround(static_cast<double>(n) * wanted.scale));
}

fs::path find_file(const std::string &prefix)
{
    fs::path found;
    if (!wanted.data.empty())
        for (const fs::directory_entry &entry : fs::recursive_directory_iterator(wanted.data))
            if (entry.is_regular_file() && entry.path().filename().string().starts_with(prefix) &&
                (found.empty() || entry.file_size() > fs::file_size(found)))
                found = entry.path();
    return found;
}

std::string unpacked(const fs::path &path)
{
    const std::string ending = path.extension().string();
    const char *const by = ending == ".gz" ? "gzip -dc -- '" : ending == ".xz" ? "xz -dc -- '" : "cat -- '";
    const std::unique_ptr<FILE, int (*)(FILE *)> pipe(popen((by + path.string() + "'").c_str(), "r"), pclose);
    std::string text;
    std::vector<char> buffer(1 << 20);
    while (const std::size_t got = pipe == nullptr ? 0 : std::fread(buffer.data(), 1, buffer.size(), pipe.get()))
        text.append(buffer.data(), got);
    if (text.empty())
        throw std::runtime_error("cannot unpack " + path.string());
    return text;
}

} // namespace

Drawn::Drawn(const std::string &kind, std::int64_t n, std::int32_t d) : line_{kind, scaled(n), d, 1, ""}
{
    rows_.fill(line_, 1);
}

Set Drawn::set() const
{
    return {line_.kind, rows_.values(), line_.n, line_.d};
}

Table::Table(const std::string &prefix) : name_(prefix.substr(0, prefix.find('.')))
{
    const fs::path path = find_file(prefix);
    if (path.empty()) {
        std::fprintf(stderr, "papers: %s is left out: there is no such file (--data FOLDER)\n", prefix.c_str());
        return;
    }
    const std::string text = unpacked(path);
    std::vector<std::map<std::string_view, float>> words; // of each column
    for (std::string_view rest = text; !rest.empty();) {
        std::string_view line = rest.substr(0, rest.find('\n'));
        rest.remove_prefix(std::min(rest.size(), line.size() + 1));
        std::int32_t column = 0;
        for (std::size_t comma; (comma = line.find(',')) != std::string_view::npos; ++column) {
            const std::string_view field = line.substr(0, comma);
            line.remove_prefix(comma + 1);
            words.resize(std::max(words.size(), static_cast<std::size_t>(column) + 1));
            float value = 0.0F;
            if (std::from_chars(field.begin(), field.end(), value).ptr != field.end()) {
                auto &of_column = words[static_cast<std::size_t>(column)];
                value = of_column.emplace(field, static_cast<float>(of_column.size())).first->second;
            }
            values_.push_back(value);
        }
        if (d_ == 0)
            d_ = column;
        else if (column != d_ && column != 0)
            throw std::runtime_error(path.string() + " has lines of different lengths");
    }
    own_ = values_.size();
}

void Table::drop(const std::vector<std::int32_t> &columns)
{
    std::size_t kept = 0;
    for (std::size_t i = 0; i < values_.size(); ++i)
        if (std::find(columns.begin(), columns.end(), static_cast<std::int32_t>(i) % d_) == columns.end())
            values_[kept++] = values_[i];
    values_.resize(kept);
    own_ = kept;
    d_ -= static_cast<std::int32_t>(columns.size());
}

Set Table::rows(std::int64_t n)
{
    n = scaled(n);
    const std::size_t wanted_values = static_cast<std::size_t>(n) * static_cast<std::size_t>(d_);
    values_.reserve(wanted_values);
    while (values_.size() < wanted_values)
        values_.push_back(values_[values_.size() - own_]);
    return {name_, values_.data(), n, d_};
}

} // namespace bench
