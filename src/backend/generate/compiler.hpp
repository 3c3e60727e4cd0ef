// compiler.hpp (generate) - NVRTC, the compiler of CUDA C++ at run time, opened when it is first needed.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace pgkm::generate {

// Whether libnvrtc can be opened; if not, *why says so.
bool has_compiler(std::string *why);

// What the driver loads: machine code of that compute capability (90: 9.0), or PTX where the compiler is older than the
// device. `cancelled` is asked now and then. Throws Error: PGKM_UNSUPPORTED without a compiler or one that knows no
// such device, PGKM_CANCELLED, PGKM_INTERNAL with the compiler's words where it refuses the text.
std::vector<char> compile(const std::string &text, int capability, const std::function<bool()> &cancelled);

} // namespace pgkm::generate
