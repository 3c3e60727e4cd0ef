// main.cu - what the GPU takes, as CSV.
//
//   gpu auto [shape ...]   one iteration on each shape of the design's table (by number; all without)
//   gpu all [shape ...]    the same by each strategy of each stage
//   gpu iterations [shape ...]  the iterations of a fit one by one, and with sums made anew in each
//   gpu sweep              likewise over a grid of shapes: what choose.hpp is derived from
//   gpu cost [shape ...]   what exact labels and integer sums cost beside float32 ones
//   gpu stream             rows larger than the device's limit against plain copies over the bus
//   gpu cancel [0..4 ...]   time from the cancel flag to the return of a call
//   gpu relocation         iterations with empty clusters beside such without
//   gpu mixture [0..12 ...] one E step of EM with the sums of the M step
//   gpu groups             many problems at once against one of the same total size
//   gpu moments            the sums of a PCA against reading the rows once
//
// float32 rows on the device (bench.hpp), medians over at least 20 iterations by CUDA events.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include "bench.hpp"

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "auto";
    std::vector<int> which;
    for (int i = 0; i < static_cast<int>(std::size(bench::rows)); ++i) {
        bool wanted = argc <= 2;
        for (int a = 2; a < argc; ++a)
            wanted |= std::atoi(argv[a]) == i;
        if (wanted)
            which.push_back(i);
    }
    const auto is = [&](const char *name) { return std::strcmp(mode, name) == 0; };
    try {
        if (is("auto"))
            bench::automatic(which);
        else if (is("all"))
            bench::all(which);
        else if (is("iterations"))
            bench::iterations(which);
        else if (is("sweep"))
            bench::sweep();
        else if (is("cost"))
            bench::cost(which);
        else if (is("stream"))
            bench::stream();
        else if (is("cancel"))
            bench::cancel(which);
        else if (is("relocation"))
            bench::relocation();
        else if (is("groups"))
            bench::groups();
        else if (is("mixture"))
            bench::mixture(which);
        else if (is("moments"))
            bench::moments();
        else
            return 2;
    } catch (const pgkm::Error &error) {
        std::printf("%s: %s\n", mode, error.what());
        return 1;
    }
    return 0;
}
