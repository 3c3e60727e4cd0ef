// main.cu - what parts of the GPU backend take, as CSV. Whole fits: bench/fits.
//
//   gpu stream             rows larger than the device's limit against plain copies over the bus
//   gpu cancel [0..4 ...]   time from the cancel flag to the return of a call
//   gpu relocation         iterations with empty clusters beside such without
//   gpu mixture [0..29 ...] one E step of EM with the sums of the M step
//   gpu groups             many problems at once against one of the same total size
//   gpu moments            the sums of a PCA against reading the rows once
//
// float32 rows on the device.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "bench.hpp"

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    std::vector<int> which;
    for (int i = 0; i < 32; ++i) { // more than any mode has
        bool wanted = argc <= 2;
        for (int a = 2; a < argc; ++a)
            wanted |= std::atoi(argv[a]) == i;
        if (wanted)
            which.push_back(i);
    }
    const auto is = [&](const char *name) { return std::strcmp(mode, name) == 0; };
    try {
        if (is("stream"))
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
