// source.cpp - the CUDA C++ of a user's reduction, for reading.
#include <cstdlib>
#include <cstring>
#include <new>

#include "backend/generate/kernel.hpp"
#include "backend/reduction_program.hpp"
#include "engine/api.h"
#include "numeric/error.hpp"

char *pgkm_reduction_source(const PgkmReduction *reduction, PgkmElement element, int32_t d, const char *layout,
                            int32_t capability, PgkmError *error)
{
    using namespace pgkm;
    char *text = nullptr;
    guarded(error, [&] {
        check_program(*reduction, d);
        const generate::Program program(*reduction);
        const generate::Plan plan = make_plan(program, parse_strategy<ReductionLayout>(on_cuda, layout),
                                              generate::device_of_capability(capability));
        const std::string source = kernel_source(program, plan, {element == PGKM_FLOAT32, d});
        text = static_cast<char *>(std::malloc(source.size() + 1));
        if (text == nullptr)
            throw std::bad_alloc();
        std::memcpy(text, source.c_str(), source.size() + 1);
    });
    return text;
}

void pgkm_text_free(char *text)
{
    std::free(text);
}
