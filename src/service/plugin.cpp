// plugin.cpp - opens the CUDA plugin, once, and remembers why it could not.
#include "service/plugin.hpp"

#include <dlfcn.h>

#include <mutex>

namespace pgkm {
namespace {

struct Plugin {
    const PgkmBackend *table = nullptr;
    std::string why;
};

// The reason is told to every role, the server's folders are not.
std::string without_folder(std::string text, const std::string &path)
{
    const std::string folder = path.substr(0, path.rfind('/') + 1);
    for (std::size_t at; !folder.empty() && (at = text.find(folder)) != std::string::npos;)
        text.erase(at, folder.size());
    return text;
}

Plugin load_plugin(const std::string &path)
{
    Plugin plugin;
    // Never closed: the driver keeps threads and state behind the library.
    void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
        plugin.why = without_folder(std::string("the CUDA plugin cannot be loaded: ") + dlerror(), path);
        return plugin;
    }
    using Entry = const PgkmBackend *(*)(std::uint32_t);
    const auto entry = reinterpret_cast<Entry>(dlsym(library, PGKM_BACKEND_ENTRY));
    const PgkmBackend *table = entry == nullptr ? nullptr : entry(PGKM_BACKEND_ABI);
    if (table == nullptr || table->abi != PGKM_BACKEND_ABI || table->struct_size != sizeof(PgkmBackend))
        plugin.why = without_folder("the CUDA plugin " + path + " belongs to another version of pg_kmeans", path);
    else
        plugin.table = table;
    return plugin;
}

} // namespace

const PgkmBackend *cuda_backend(const char *path, std::string *why)
{
    static std::mutex mutex;
    static bool tried = false;
    static Plugin plugin;
    const std::lock_guard<std::mutex> lock(mutex);
    if (!tried) {
        plugin = load_plugin(path == nullptr ? "./pg_kmeans_cuda.so" : path);
        tried = true;
    }
    if (why != nullptr)
        *why = plugin.why;
    return plugin.table;
}

} // namespace pgkm
