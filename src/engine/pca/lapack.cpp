// lapack.cpp - opens the first LAPACK that the loader finds, in one thread.
#include "engine/pca/lapack.hpp"

#include <dlfcn.h>
#ifdef __linux__
#include <sched.h>
#endif

#include "numeric/signals.hpp"

namespace pgkm {
namespace {

// OpenBLAS by its names on Debian and Fedora; then whatever the system calls LAPACK.
constexpr const char *names[] = {"libopenblas.so.0", "libopenblasp.so.0", "liblapack.so.3"};

// As soon as it is opened, OpenBLAS starts a thread for each processor that the caller may run on. It gets
// one thread to compute in (symmetric_eigen.cpp), so it is shown one processor.
class OneProcessor {
  public:
#ifdef __linux__
    OneProcessor()
    {
        saved_ = sched_getaffinity(0, sizeof all_, &all_) == 0;
        cpu_set_t one;
        CPU_ZERO(&one);
        for (int i = 0; saved_ && i < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++i)
            if (CPU_ISSET(i, &all_))
                CPU_SET(i, &one);
        if (saved_)
            (void)sched_setaffinity(0, sizeof one, &one);
    }
    ~OneProcessor()
    {
        if (saved_)
            (void)sched_setaffinity(0, sizeof all_, &all_);
    }
    OneProcessor(const OneProcessor &) = delete;
    OneProcessor &operator=(const OneProcessor &) = delete;

  private:
    cpu_set_t all_;
    bool saved_;
#endif
};

template <typename Function>
bool find(void *library, const char *name, Function **function)
{
    *function = reinterpret_cast<Function *>(dlsym(library, name));
    return *function != nullptr;
}

const Lapack *open_first()
{
    static Lapack found;
    const SignalsBlocked guard; // for threads that a library starts all the same
    [[maybe_unused]] const OneProcessor one;
    for (const char *const name : names) {
        void *const library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
        if (library == nullptr)
            continue;
        if (find(library, "dsytrd_", &found.dsytrd) && find(library, "dstedc_", &found.dstedc) &&
            find(library, "dormtr_", &found.dormtr)) {
            find(library, "openblas_set_num_threads", &found.set_threads);
            return &found;
        }
        dlclose(library);
    }
    return nullptr;
}

} // namespace

const Lapack *lapack()
{
    static const Lapack *const found = open_first();
    return found;
}

} // namespace pgkm
