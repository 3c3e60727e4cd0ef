// compiler.cpp (generate) - the functions of libnvrtc by their names: no header of CUDA, and no need of it to start.
#include "backend/generate/compiler.hpp"

#include <algorithm>

#include <dlfcn.h>

#include "numeric/error.hpp"

namespace pgkm::generate {
namespace {

using Program = void *;

void *library()
{
    static void *const opened = [] {
        void *found = nullptr;
        for (const char *const name :
             {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so", "/usr/local/cuda/lib64/libnvrtc.so"})
            found = found == nullptr ? dlopen(name, RTLD_NOW | RTLD_LOCAL) : found;
        return found;
    }();
    return opened;
}

// Empty: all is there.
std::string missing()
{
    if (library() == nullptr)
        return "NVRTC (libnvrtc.so) was not found";
    for (const char *const name :
         {"nvrtcCreateProgram", "nvrtcCompileProgram", "nvrtcDestroyProgram", "nvrtcGetProgramLogSize",
          "nvrtcGetProgramLog", "nvrtcGetCUBINSize", "nvrtcGetCUBIN", "nvrtcGetPTXSize", "nvrtcGetPTX",
          "nvrtcGetNumSupportedArchs", "nvrtcGetSupportedArchs"})
        if (dlsym(library(), name) == nullptr)
            return std::string("libnvrtc.so has no ") + name;
    return "";
}

// The function of that name. 0: all is well.
template <typename... Arguments>
int call(const char *name, Arguments... arguments)
{
    return reinterpret_cast<int (*)(Arguments...)>(dlsym(library(), name))(arguments...);
}

// The device's own architecture, or the greatest below it.
int architecture_for(int capability)
{
    int count = 0;
    if (call("nvrtcGetNumSupportedArchs", &count) != 0)
        count = 0;
    std::vector<int> known(static_cast<std::size_t>(count));
    if (count > 0 && call("nvrtcGetSupportedArchs", known.data()) != 0)
        known.clear();
    int best = 0;
    for (const int architecture : known)
        if (architecture <= capability)
            best = std::max(best, architecture);
    if (best == 0)
        throw Error(PGKM_UNSUPPORTED, "NVRTC knows no compute capability up to " + std::to_string(capability / 10) +
                                          "." + std::to_string(capability % 10));
    return best;
}

// One text on its way.
class Compilation {
  public:
    using Strings = const char *const *;

    Compilation(const std::string &text, const std::function<bool()> &cancelled) : cancelled_(cancelled)
    {
        if (call("nvrtcCreateProgram", &program_, text.c_str(), "reduction.cu", 0, Strings{}, Strings{}) != 0)
            throw Error(PGKM_OUT_OF_MEMORY, "NVRTC takes no text");
    }
    ~Compilation() { call("nvrtcDestroyProgram", &program_); }
    Compilation(const Compilation &) = delete;
    Compilation &operator=(const Compilation &) = delete;

    std::vector<char> run(int capability)
    {
        const int architecture = architecture_for(capability);
        const bool native = architecture == capability;
        const std::string target =
            std::string("--gpu-architecture=") + (native ? "sm_" : "compute_") + std::to_string(architecture);
        // No contraction, as everywhere: fma() where it is written.
        const char *const options[] = {target.c_str(), "--std=c++17", "--fmad=false"};
        if (dlsym(library(), "nvrtcSetFlowCallback") != nullptr) // of CUDA 12.8 and later
            call("nvrtcSetFlowCallback", program_, &Compilation::asked, static_cast<void *>(this));
        const int state = call("nvrtcCompileProgram", program_, 3, Strings{options});
        if (cancelled_())
            throw Error(PGKM_CANCELLED, "cancelled");
        if (state != 0)
            throw Error(PGKM_INTERNAL,
                        "NVRTC refuses the generated text: " + text("nvrtcGetProgramLogSize", "nvrtcGetProgramLog"));
        const std::string code =
            native ? text("nvrtcGetCUBINSize", "nvrtcGetCUBIN") : text("nvrtcGetPTXSize", "nvrtcGetPTX");
        return {code.begin(), code.end()};
    }

  private:
    static int asked(void *self, void *) { return static_cast<Compilation *>(self)->cancelled_() ? 1 : 0; }
    std::string text(const char *size_of, const char *get) const
    {
        std::size_t size = 0;
        if (call(size_of, program_, &size) != 0)
            return "";
        std::string result(size, '\0');
        return call(get, program_, result.data()) == 0 ? result : "";
    }

    const std::function<bool()> &cancelled_;
    Program program_ = nullptr;
};

} // namespace

bool has_compiler(std::string *why)
{
    static const std::string lacks = missing();
    if (!lacks.empty())
        *why = lacks;
    return lacks.empty();
}

std::vector<char> compile(const std::string &text, int capability, const std::function<bool()> &cancelled)
{
    if (std::string why; !has_compiler(&why))
        throw Error(PGKM_UNSUPPORTED, why);
    return Compilation(text, cancelled).run(capability);
}

} // namespace pgkm::generate
