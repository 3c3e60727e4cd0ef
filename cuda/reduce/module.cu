// module.cu (reduce) - compiles texts, loads them, and remembers the last ones.
#include "reduce/module.hpp"

#include <list>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "backend/generate/compiler.hpp"

namespace pgkm::cuda {
namespace {

// Of the texts used last; parameters are no part of them, so that the steps of an iteration share one.
class Cache {
  public:
    std::shared_ptr<const Module> find(const std::string &key)
    {
        const std::lock_guard lock(mutex_);
        for (auto entry = entries_.begin(); entry != entries_.end(); ++entry)
            if (entry->first == key) {
                entries_.splice(entries_.begin(), entries_, entry);
                return entry->second;
            }
        return nullptr;
    }
    void keep(const std::string &key, std::shared_ptr<const Module> kept)
    {
        const std::lock_guard lock(mutex_);
        entries_.emplace_front(key, std::move(kept));
        if (entries_.size() > most_entries)
            entries_.pop_back();
    }

  private:
    static constexpr std::size_t most_entries = 64;
    std::mutex mutex_;
    std::list<std::pair<std::string, std::shared_ptr<const Module>>> entries_;
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

// nullptr where there is none. Machine code has a section for each kernel, PTX an entry.
cudaKernel_t optional_kernel(cudaLibrary_t library, const std::vector<char> &code, const std::string &name)
{
    const std::string section = (".text." + name).append(1, '\0'), entry = ".entry " + name + "(";
    const std::string_view text(code.data(), code.size());
    const bool there = text.find(section) != text.npos || text.find(entry) != text.npos;
    return there ? kernel(library, name.c_str()) : nullptr;
}

std::shared_ptr<const Module> load(const std::vector<char> &code)
{
    auto made = std::make_shared<Module>();
    checked("cudaLibraryLoadData",
            [&] { return cudaLibraryLoadData(&made->library, code.data(), nullptr, nullptr, 0, nullptr, nullptr, 0); });
    made->init = kernel(made->library, "init");
    made->reduc = kernel(made->library, "reduc");
    made->combine = optional_kernel(made->library, code, "combine");
    made->magnitudes = optional_kernel(made->library, code, "magnitudes");
    return made;
}

} // namespace

Module::~Module()
{
    if (library != nullptr)
        cudaLibraryUnload(library);
}

std::shared_ptr<const Module> module_of(Context &context, const std::string &text)
{
    const std::string key = std::to_string(context.facts.capability) + "\n" + text;
    if (std::shared_ptr<const Module> known = cache().find(key); known != nullptr)
        return known;
    const std::vector<char> code =
        generate::compile(text, context.facts.capability, [&] { return context.is_cancelled(); });
    std::shared_ptr<const Module> made = load(code);
    cache().keep(key, made);
    return made;
}

} // namespace pgkm::cuda
