// probe_check.cu - what the plugin's probe says of the first device, in a build for that device and in one for others.
// Build: nvcc -std=c++20 -DPGKM_CUDA_PLUGIN -Isrc -Icuda ARCHITECTURES cuda/{probe,check}.cu test/cuda/probe_check.cu
//   probe_check usable     status 0 when it can be used
//   probe_check no-code    status 0 when it cannot, for want of code
#include <cstdio>
#include <cstring>
#include <string>

#include "plugin/probe.hpp"

int main(int argc, char **argv)
{
    PgkmDevice device = {};
    PgkmError error = {};
    std::int32_t count = 0;
    if (pgkm::cuda::probe(&device, 1, &count, &error) != PGKM_OK || count < 1) {
        std::printf("probe: %d devices %s\n", count, error.text);
        return 2;
    }
    std::string want;
    if (argc > 1 && std::strcmp(argv[1], "no-code") == 0)
        want = "no code for compute capability " + std::to_string(device.capability_major) + "." +
               std::to_string(device.capability_minor) + " in this build";
    const bool right = device.reason == want && (device.usable != 0) == want.empty();
    std::printf("probe: %s usable %d \"%s\": %s\n", device.name, device.usable, device.reason,
                right ? "right" : "WRONG");
    return right ? 0 : 1;
}
