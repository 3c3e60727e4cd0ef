// module.cu (reduce) - compiles texts, loads them, and remembers the last ones.
#include "reduce/module.hpp"

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "backend/generate/compiler.hpp"

namespace pgkm::cuda {
namespace {

// Of the last texts; parameters are no part of them, so that the steps of an iteration share one.
struct Cache {
    std::mutex mutex;
    std::map<std::string, std::shared_ptr<const Module>> modules;
};

Cache &cache()
{
    static Cache *const lasting = new Cache; // the runtime may be gone before static objects are
    return *lasting;
}

cudaKernel_t kernel(cudaLibrary_t library, const char *name)
{
    cudaKernel_t found = nullptr;
    checked("cudaLibraryGetKernel", [&] { return cudaLibraryGetKernel(&found, library, name); });
    return found;
}

std::shared_ptr<const Module> load(const std::vector<char> &code, bool measures)
{
    auto made = std::make_shared<Module>();
    checked("cudaLibraryLoadData",
            [&] { return cudaLibraryLoadData(&made->library, code.data(), nullptr, nullptr, 0, nullptr, nullptr, 0); });
    made->init = kernel(made->library, "init");
    made->reduc = kernel(made->library, "reduc");
    made->combine = kernel(made->library, "combine");
    if (measures)
        made->magnitudes = kernel(made->library, "magnitudes");
    return made;
}

} // namespace

Module::~Module()
{
    if (library != nullptr)
        cudaLibraryUnload(library);
}

std::shared_ptr<const Module> module_of(Context &context, const std::string &text, bool measures)
{
    constexpr std::size_t most = 64;
    const std::string key = std::to_string(context.facts.capability) + "\n" + text;
    {
        const std::lock_guard lock(cache().mutex);
        if (const auto known = cache().modules.find(key); known != cache().modules.end())
            return known->second;
    }
    std::shared_ptr<const Module> made =
        load(generate::compile(text, context.facts.capability, [&] { return context.is_cancelled(); }), measures);
    const std::lock_guard lock(cache().mutex);
    if (cache().modules.size() >= most)
        cache().modules.clear(); // who runs one holds it
    cache().modules[key] = made;
    return made;
}

} // namespace pgkm::cuda
