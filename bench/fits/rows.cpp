// rows.cpp - draws or reads the rows of a line, by all processors.
#include "rows.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <functional>
#include <stdexcept>
#include <thread>
#include <unordered_set>
#include <vector>

#include <sys/mman.h>
#include <unistd.h>

namespace bench {
namespace {

// SplitMix64, started anew for each row: rows come out alike however threads share them out.
class Random {
  public:
    Random(std::uint64_t seed, std::uint64_t row) : state_(mix(seed * 0x9E3779B97F4A7C15U + 1) ^ mix(row + 0x51ED27U))
    {
    }

    std::uint64_t next() { return mix(state_ += 0x9E3779B97F4A7C15U); }
    float uniform() { return (static_cast<float>(next() >> 40) + 0.5F) * 0x1p-24F; } // in (0, 1)
    float normal()
    {
        if (kept_) {
            kept_ = false;
            return second_;
        }
        const float radius = std::sqrt(-2.0F * std::log(uniform())), angle = 6.2831853F * uniform();
        second_ = radius * std::sin(angle);
        kept_ = true;
        return radius * std::cos(angle);
    }

  private:
    static std::uint64_t mix(std::uint64_t z)
    {
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
        return z ^ (z >> 31);
    }

    std::uint64_t state_;
    float second_ = 0.0F;
    bool kept_ = false;
};

constexpr std::uint64_t of_centres = std::uint64_t{1} << 62, of_choice = of_centres + 1; // no row has these numbers

// Writes one row; `centres` holds what all rows of the kind share.
using Draw = void (*)(Random &random, const std::vector<float> &centres, std::int32_t d, float *row);

struct Kind {
    const char *name;
    int centres; // rows of them
    float (*centre)(Random &random);
    Draw draw;
};

float in_cube(Random &random)
{
    return 200.0F * random.uniform() - 100.0F;
}
float in_gauss(Random &random)
{
    return random.normal();
}

const float *any_centre(Random &random, const std::vector<float> &centres, std::int32_t d)
{
    return centres.data() +
           random.next() % (centres.size() / static_cast<std::size_t>(d)) * static_cast<std::size_t>(d);
}

void draw_blobs(Random &random, const std::vector<float> &centres, std::int32_t d, float *row)
{
    const float *centre = any_centre(random, centres, d);
    const float spread = 10.0F / std::sqrt(static_cast<float>(d));
    for (std::int32_t f = 0; f < d; ++f)
        row[f] = centre[f] + spread * random.normal();
}

void draw_overlap(Random &random, const std::vector<float> &centres, std::int32_t d, float *row)
{
    const float *centre = any_centre(random, centres, d);
    for (std::int32_t f = 0; f < d; ++f)
        row[f] = centre[f] + random.normal();
}

void draw_uniform(Random &random, const std::vector<float> &, std::int32_t d, float *row)
{
    for (std::int32_t f = 0; f < d; ++f)
        row[f] = random.uniform();
}

void draw_lognormal(Random &random, const std::vector<float> &, std::int32_t d, float *row)
{
    for (std::int32_t f = 0; f < d; ++f)
        row[f] = std::exp(1.5F * random.normal());
}

void draw_directions(Random &random, const std::vector<float> &axes, std::int32_t d, float *row)
{
    for (std::int32_t f = 0; f < d; ++f)
        row[f] = 0.3F * random.normal();
    for (std::size_t at = 0; at < axes.size(); at += static_cast<std::size_t>(d)) {
        const float weight = random.normal();
        for (std::int32_t f = 0; f < d; ++f)
            row[f] += weight * axes[at + static_cast<std::size_t>(f)];
    }
    float square = 0.0F;
    for (std::int32_t f = 0; f < d; ++f)
        square += row[f] * row[f];
    for (std::int32_t f = 0; f < d; ++f)
        row[f] /= std::sqrt(square);
}

// Attributes of five levels, drawn with the probabilities of the row's class: one of five columns each is 1.
void draw_levels(Random &random, const std::vector<float> &classes, std::int32_t d, float *row)
{
    const float *likely = any_centre(random, classes, d);
    std::fill_n(row, d, 0.0F);
    for (std::int32_t first = 0; first < d; first += 5) {
        float most = -1e30F;
        std::int32_t level = first;
        for (std::int32_t f = first; f < std::min(first + 5, d); ++f)
            if (const float score = 1.5F * likely[f] - std::log(-std::log(random.uniform())); score > most) {
                most = score;
                level = f;
            }
        row[level] = 1.0F;
    }
}

// Near a place, in steps of a hundredth: many rows are the same.
void draw_towns(Random &random, const std::vector<float> &places, std::int32_t d, float *row)
{
    const float *place = any_centre(random, places, d);
    for (std::int32_t f = 0; f < d; ++f)
        row[f] = std::round(place[f] + 5.0F * random.normal()) / 100.0F;
}

constexpr Kind kinds[] = {
    {"blobs", 10, in_cube, draw_blobs},
    {"uniform", 0, nullptr, draw_uniform},
    {"overlap", 100, in_gauss, draw_overlap},
    {"lognormal", 0, nullptr, draw_lognormal},
    {"directions", 10, in_gauss, draw_directions},
    {"levels", 30, in_gauss, draw_levels},
    {"towns", 200, in_cube, draw_towns},
};

const Kind *find_kind(const std::string &name)
{
    const auto *const found =
        std::find_if(std::begin(kinds), std::end(kinds), [&](const Kind &kind) { return name == kind.name; });
    return found == std::end(kinds) ? nullptr : found;
}

// body(first, last) over shares of 0 .. n, each in a thread.
void in_threads(std::int64_t n, const std::function<void(std::int64_t, std::int64_t)> &body)
{
    const std::int64_t parts = std::clamp<std::int64_t>(std::thread::hardware_concurrency(), 1, n);
    std::vector<std::thread> threads;
    for (std::int64_t part = 0; part < parts; ++part)
        threads.emplace_back(body, n * part / parts, n * (part + 1) / parts);
    for (std::thread &thread : threads)
        thread.join();
}

void draw_rows(const Kind &kind, const Line &line, std::uint64_t seed, float *values)
{
    std::vector<float> centres;
    Random shared(seed, of_centres);
    for (std::int32_t i = 0; i < kind.centres * line.d; ++i)
        centres.push_back(kind.centre(shared));
    in_threads(line.n, [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t i = first; i < last; ++i) {
            Random random(seed, static_cast<std::uint64_t>(i));
            kind.draw(random, centres, line.d, values + i * line.d);
        }
    });
}

void read_rows(const Line &line, float *values)
{
    std::ifstream file(line.file, std::ios::binary);
    if (line.file.ends_with(".npy"))
        file.seekg(npy_shape(line.file).offset);
    if (!file.read(reinterpret_cast<char *>(values), line.n * line.d * static_cast<std::streamsize>(sizeof(float))))
        throw std::runtime_error("cannot read the rows of " + line.file);
}

} // namespace

bool is_kind(const std::string &kind)
{
    return find_kind(kind) != nullptr;
}

FileShape npy_shape(const std::string &path)
{
    std::string head(4096, '\0');
    std::ifstream file(path, std::ios::binary);
    file.read(head.data(), static_cast<std::streamsize>(head.size()));
    const auto byte = [&](std::size_t i) { return static_cast<std::int64_t>(static_cast<unsigned char>(head[i])); };
    const bool first_version = byte(6) == 1; // later ones have a longer length
    const std::size_t shape = head.find("'shape': (");
    long long n = 0;
    FileShape found = {0, 0, (first_version ? 10 : 12) + byte(8) + 256 * byte(9)};
    if (!head.starts_with("\x93NUMPY") || head.find("'<f4'") == std::string::npos || shape == std::string::npos ||
        head.find("'fortran_order': False") == std::string::npos ||
        std::sscanf(head.c_str() + shape, "'shape': (%lld, %d)", &n, &found.d) != 2)
        throw std::runtime_error(path + " is no .npy file of float32 rows");
    found.n = n;
    return found;
}

Rows::Rows() : file_(memfd_create("rows", 0))
{
    if (file_ < 0)
        throw std::runtime_error(std::string("memfd_create: ") + std::strerror(errno));
}

Rows::~Rows()
{
    clear();
    close(file_);
}

void Rows::clear()
{
    if (values_ != nullptr)
        munmap(values_, bytes_);
    values_ = nullptr;
    bytes_ = 0;
    (void)!ftruncate(file_, 0); // gives the memory back
}

void Rows::fill(const Line &line, std::uint64_t seed)
{
    clear();
    const std::size_t d = static_cast<std::size_t>(line.d), n = static_cast<std::size_t>(line.n);
    bytes_ = (n + static_cast<std::size_t>(line.k)) * d * sizeof(float);
    void *memory = MAP_FAILED;
    if (ftruncate(file_, static_cast<off_t>(bytes_)) == 0)
        memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
    if (memory == MAP_FAILED)
        throw std::runtime_error(std::string("no memory for the rows: ") + std::strerror(errno));
    values_ = static_cast<float *>(memory);
    centroids_ = values_ + n * d;
    if (line.file.empty())
        draw_rows(*find_kind(line.kind), line, seed, values_);
    else
        read_rows(line, values_);
    choose_centroids(line, seed);
}

void Rows::choose_centroids(const Line &line, std::uint64_t seed)
{
    Random random(seed, of_choice);
    std::unordered_set<std::uint64_t> chosen;
    while (chosen.size() < static_cast<std::size_t>(line.k)) {
        const std::uint64_t row = random.next() % static_cast<std::uint64_t>(line.n);
        const auto d = static_cast<std::size_t>(line.d);
        if (chosen.insert(row).second)
            std::copy_n(values_ + row * d, d, centroids_ + (chosen.size() - 1) * d);
    }
}

} // namespace bench
