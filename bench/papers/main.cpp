// papers - the experiments of the works that pg_kmeans implements, again: docs/papers.md. `run` beside this file calls
// it and knows the one work that bench/reduce measures.
//
//   papers aggarwal|li|lutz|oleary [--backend cpu|cuda] [--plugin FILE] [--threads N]
//          [--only TEXT]     figures whose name has the text
//          [--data FOLDER]   with the sets KDD 99 and Covertype, under the names that they are spread by
//          [--scale S]       so many times the rows
//          [--seconds S]     the most of a fit: beyond that it runs fewer iterations, as its line says
//
// Output: CSV; measure.hpp says what a line is. What cannot run says so on stderr, as do the times that figures took.
#include <cstdio>
#include <exception>
#include <map>
#include <stdexcept>

#include "measure.hpp"

namespace {

using Work = void (*)();
const std::map<std::string, Work> works = {
    {"aggarwal", bench::aggarwal}, {"li", bench::li}, {"lutz", bench::lutz}, {"oleary", bench::oleary}};

Work parse(int argc, char **argv)
{
    std::map<std::string, std::string> given = {{"--backend", "cuda"}, {"--plugin", "build/pg_kmeans_cuda.so"},
                                                {"--threads", "0"},    {"--only", ""},
                                                {"--data", ""},        {"--scale", "1"},
                                                {"--seconds", "10"}};
    const auto work = works.find(argc < 2 ? "" : argv[1]);
    if (work == works.end())
        throw std::runtime_error("which work? aggarwal, li, lutz or oleary");
    for (int i = 2; i < argc; i += 2) {
        const auto option = given.find(argv[i]);
        if (option == given.end() || i + 1 == argc)
            throw std::runtime_error(std::string(argv[i]) + " is no option, or has no value");
        option->second = argv[i + 1];
    }
    bench::options.threads = std::stoi(given["--threads"]);
    bench::wanted = {given["--only"], given["--data"], std::stod(given["--scale"]), std::stod(given["--seconds"])};
    bench::options.backend = bench::find_backend(given["--backend"], given["--plugin"].c_str());
    return bench::options.backend == nullptr ? nullptr : work->second;
}

} // namespace

int main(int argc, char **argv)
{
    try {
        const Work work = parse(argc, argv);
        if (work == nullptr)
            return 2;
        std::printf("figure,data,n,d,k,backend,device,threads,by,what,ms,iterations,ran\n");
        work();
        return 0;
    } catch (const std::exception &error) {
        std::fprintf(stderr, "papers: %s\n", error.what());
        return 1;
    }
}
