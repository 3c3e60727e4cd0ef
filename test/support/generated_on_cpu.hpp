// generated_on_cpu.hpp - generated kernels, compiled by the host's compiler and run as the plugin runs them.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include <dlfcn.h>
#include <unistd.h>

#include "backend/generate/kernel.hpp"
#include "backend/generate/results.hpp"
#include "numeric/contract.hpp"
#include "numeric/error.hpp"
#include "support/program.hpp"

namespace conformance {

// Texts of one library. A text's number is its place.
class GeneratedOnCpu {
  public:
    GeneratedOnCpu() : folder_(std::filesystem::temp_directory_path() / "pgkm_generated_XXXXXX")
    {
        std::string name = folder_.string();
        if (mkdtemp(name.data()) == nullptr)
            throw std::runtime_error("no temporary folder");
        folder_ = name;
        code_ = "#include \"" PGKM_CHECKOUT "test/support/cuda_on_cpu.hpp\"\n";
    }
    ~GeneratedOnCpu()
    {
        if (library_ != nullptr)
            dlclose(library_);
        std::filesystem::remove_all(folder_);
    }
    GeneratedOnCpu(const GeneratedOnCpu &) = delete;
    GeneratedOnCpu &operator=(const GeneratedOnCpu &) = delete;

    void add(const std::string &text)
    {
        const std::string number = std::to_string(count_++);
        code_ += "namespace text_" + number + " {\n";
        for (const char *kernel : {"init", "reduc", "combine", "magnitudes"})
            code_ += std::string("#define ") + kernel + " " + kernel + "_" + number + "\n";
        code_ += text;
        for (const char *kernel : {"init", "reduc", "combine", "magnitudes"})
            code_ += std::string("#undef ") + kernel + "\n";
        code_ += "Word shared[65536];\n}\n";
    }

    // False: the host has no compiler. Throws where the texts are not C++.
    bool compile()
    {
        const char *const compiler = std::getenv("CXX") == nullptr ? "c++" : std::getenv("CXX");
        if (std::system((std::string(compiler) + " --version >/dev/null 2>&1").c_str()) != 0)
            return false;
        const std::string source = folder_ / "texts.cpp", library = folder_ / "texts.so", log = folder_ / "log";
        std::ofstream(source) << code_;
        if (std::system((std::string(compiler) + " -std=c++20 -O0 -w -ffp-contract=off -fPIC -shared -pthread " +
                         source + " -o " + library + " 2>" + log)
                            .c_str()) != 0) {
            std::ifstream lines(log);
            throw std::runtime_error(std::string(std::istreambuf_iterator<char>(lines), {}));
        }
        library_ = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (library_ == nullptr)
            throw std::runtime_error(dlerror());
        return true;
    }

    template <typename Function>
    Function *find(const std::string &name) const
    {
        return reinterpret_cast<Function *>(dlsym(library_, name.c_str()));
    }

  private:
    std::filesystem::path folder_;
    std::string code_;
    int count_ = 0;
    void *library_ = nullptr;
};

// The host's side of one text: what cuda/reduce does on a device. Rows come in chunks of so many.
template <typename T>
class GeneratedRun {
    using Word = unsigned long long;

  public:
    GeneratedRun(const GeneratedOnCpu &library, int text, const pgkm::generate::Program &program,
                 const pgkm::generate::Plan &plan)
        : library_(library), number_("_" + std::to_string(text)), program_(program), plan_(plan)
    {
    }

    // The first row that failed, or -1.
    std::int64_t run(const std::vector<T> &rows, std::int32_t d, std::int64_t chunk, std::int64_t blocks,
                     PgkmReduced &out)
    {
        using namespace pgkm;
        const auto n = static_cast<std::int64_t>(rows.size()) / d;
        const double *const parameters = program_.source().parameters;
        const auto scales_wanted = static_cast<std::size_t>(plan_.words.scales);
        std::vector<Word> largest(scales_wanted), total(static_cast<std::size_t>(plan_.words.count)),
            copies(static_cast<std::size_t>(plan_.words.count * blocks)),
            own(static_cast<std::size_t>(blocks * plan_.threads * plan_.own_words));
        Word fault = ~Word{0};
        const int stop = 0;
        const auto launch = [&](const std::function<void()> &kernel) {
            run_on_cpu()(static_cast<unsigned>(blocks), 1, static_cast<unsigned>(plan_.threads), kernel);
        };
        const auto each_word = [&](const std::function<void()> &kernel) {
            run_on_cpu()(static_cast<unsigned>(plan_.words.count), 1, 1, kernel);
        };
        if (scales_wanted > 0)
            launch([&] {
                kernel<void(const T *, long long, long long, const double *, Word *, Word *, const int *)>(
                    "magnitudes")(rows.data(), 0, n, parameters, largest.data(), &fault, &stop);
            });
        const std::vector<int> exponents = generate::scale_exponents({largest.begin(), largest.end()});
        std::vector<double> scales;
        for (const int exponent : exponents)
            scales.push_back(power_of_two(exponent));
        each_word([&] { kernel<void(Word *)>("init")(total.data()); });
        for (std::int64_t first = 0; first < n; first += chunk) {
            launch([&] {
                kernel<void(const T *, long long, long long, const double *, const double *, Word *, Word *, Word *,
                            const int *)>("reduc")(rows.data() + first * d, first, std::min(chunk, n - first),
                                                   parameters, scales.data(), own.data(),
                                                   plan_.has_copies() ? copies.data() : total.data(), &fault, &stop);
            });
            if (plan_.has_copies())
                each_word([&] {
                    kernel<void(const Word *, long long, Word *)>("combine")(copies.data(), blocks, total.data());
                });
        }
        if (fault != ~Word{0})
            return static_cast<std::int64_t>(fault);
        std::vector<std::uint64_t> words(total.begin(), total.end());
        generate::read_results(program_.source(), plan_.words, words, exponents, out);
        return -1;
    }

  private:
    template <typename Function>
    Function *kernel(const char *name) const
    {
        return library_.find<Function>(name + number_);
    }
    auto run_on_cpu() const
    {
        return library_.find<void(unsigned, unsigned, unsigned, const std::function<void()> &)>("run_on_cpu");
    }

    const GeneratedOnCpu &library_;
    std::string number_;
    const pgkm::generate::Program &program_;
    const pgkm::generate::Plan &plan_;
};

} // namespace conformance
