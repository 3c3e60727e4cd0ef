// compiler.cpp (generate) - the functions of libnvrtc by their names: no header of CUDA, and no need of it to start.
#include "backend/generate/compiler.hpp"

#include <algorithm>

#include <dlfcn.h>

#include "numeric/error.hpp"

namespace pgkm::generate {
namespace {

using Program = void *;

// Results are 0 where all is well.
struct Library {
    int (*create)(Program *, const char *, const char *, int, const char *const *, const char *const *);
    int (*compile)(Program, int, const char *const *);
    int (*destroy)(Program *);
    int (*log_size)(Program, std::size_t *);
    int (*log)(Program, char *);
    int (*cubin_size)(Program, std::size_t *);
    int (*cubin)(Program, char *);
    int (*ptx_size)(Program, std::size_t *);
    int (*ptx)(Program, char *);
    int (*count_architectures)(int *);
    int (*architectures)(int *);
    int (*on_progress)(Program, int (*)(void *, void *), void *); // of CUDA 12.8 and later, else null
    std::string missing;                                          // empty: it is there
};

void *open_library()
{
    for (const char *const name :
         {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so", "/usr/local/cuda/lib64/libnvrtc.so"})
        if (void *const library = dlopen(name, RTLD_NOW | RTLD_LOCAL); library != nullptr)
            return library;
    return nullptr;
}

Library load()
{
    Library functions = {};
    void *const library = open_library();
    if (library == nullptr) {
        functions.missing = "NVRTC (libnvrtc.so) was not found";
        return functions;
    }
    const auto find = [&](const char *name, auto &function, bool optional = false) {
        function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
        if (function == nullptr && !optional)
            functions.missing = std::string("libnvrtc.so has no ") + name;
    };
    find("nvrtcCreateProgram", functions.create);
    find("nvrtcCompileProgram", functions.compile);
    find("nvrtcDestroyProgram", functions.destroy);
    find("nvrtcGetProgramLogSize", functions.log_size);
    find("nvrtcGetProgramLog", functions.log);
    find("nvrtcGetCUBINSize", functions.cubin_size);
    find("nvrtcGetCUBIN", functions.cubin);
    find("nvrtcGetPTXSize", functions.ptx_size);
    find("nvrtcGetPTX", functions.ptx);
    find("nvrtcGetNumSupportedArchs", functions.count_architectures);
    find("nvrtcGetSupportedArchs", functions.architectures);
    find("nvrtcSetFlowCallback", functions.on_progress, true);
    return functions;
}

const Library &library()
{
    static const Library loaded = load();
    return loaded;
}

// The device's own architecture, or the greatest below it.
int architecture_for(const Library &nvrtc, int capability)
{
    int count = 0;
    if (nvrtc.count_architectures(&count) != 0)
        count = 0;
    std::vector<int> known(static_cast<std::size_t>(count));
    if (count > 0 && nvrtc.architectures(known.data()) != 0)
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
    Compilation(const Library &nvrtc, const std::string &text, const std::function<bool()> &cancelled)
        : nvrtc_(nvrtc), cancelled_(cancelled)
    {
        if (nvrtc.create(&program_, text.c_str(), "reduction.cu", 0, nullptr, nullptr) != 0)
            throw Error(PGKM_OUT_OF_MEMORY, "NVRTC takes no text");
    }
    ~Compilation() { nvrtc_.destroy(&program_); }
    Compilation(const Compilation &) = delete;
    Compilation &operator=(const Compilation &) = delete;

    std::vector<char> run(int capability)
    {
        const int architecture = architecture_for(nvrtc_, capability);
        const bool native = architecture == capability;
        const std::string target =
            std::string("--gpu-architecture=") + (native ? "sm_" : "compute_") + std::to_string(architecture);
        // No contraction, as everywhere: fma() where it is written.
        const char *const options[] = {target.c_str(), "--std=c++17", "--fmad=false"};
        if (nvrtc_.on_progress != nullptr)
            nvrtc_.on_progress(program_, &Compilation::asked, this);
        const int state = nvrtc_.compile(program_, 3, options);
        if (cancelled_())
            throw Error(PGKM_CANCELLED, "cancelled");
        if (state != 0)
            throw Error(PGKM_INTERNAL, "NVRTC refuses the generated text: " + text(nvrtc_.log_size, nvrtc_.log));
        const std::string code = native ? text(nvrtc_.cubin_size, nvrtc_.cubin) : text(nvrtc_.ptx_size, nvrtc_.ptx);
        return {code.begin(), code.end()};
    }

  private:
    static int asked(void *self, void *) { return static_cast<Compilation *>(self)->cancelled_() ? 1 : 0; }
    std::string text(int (*size_of)(Program, std::size_t *), int (*get)(Program, char *)) const
    {
        std::size_t size = 0;
        if (size_of(program_, &size) != 0)
            return "";
        std::string result(size, '\0');
        if (get(program_, result.data()) != 0)
            return "";
        return result;
    }

    const Library &nvrtc_;
    const std::function<bool()> &cancelled_;
    Program program_ = nullptr;
};

} // namespace

bool has_compiler(std::string *why)
{
    if (!library().missing.empty())
        *why = library().missing;
    return library().missing.empty();
}

std::vector<char> compile(const std::string &text, int capability, const std::function<bool()> &cancelled)
{
    if (std::string why; !has_compiler(&why))
        throw Error(PGKM_UNSUPPORTED, why);
    return Compilation(library(), text, cancelled).run(capability);
}

} // namespace pgkm::generate
