// lower.cpp - the border: programs made of trees, and what a row has failed of.
#include "reduction/lower.h"

#include <cmath>
#include <memory>

#include "backend/reduction_program.hpp"
#include "reduction/lowering.hpp"

struct PgkmProgram {
    pgkm::reduction::Program program;
};

namespace {

using namespace pgkm::reduction;

const char *fault_text(PgkmOperation operation, double number)
{
    return operation == PGKM_SQRT ? "square root of a negative number"
           : operation == PGKM_LN ? "logarithm of a number that is not positive"
           : std::isnan(number)   ? "value is not a number"
                                  : "value is out of range";
}

} // namespace

PgkmProgram *pgkm_program_lower(const PgkmObjectTree *objects, std::int32_t n_objects, const PgkmNames *names,
                                PgkmGiveUp give_up, PgkmValueShape *shapes, PgkmTextError *error)
{
    std::unique_ptr<PgkmProgram> made;
    const bool good = at_border(error, [&] {
        made = std::make_unique<PgkmProgram>();
        Lowering lowering(*names, made->program, give_up);
        for (std::int32_t i = 0; i < n_objects; ++i)
            lowering.add_object(objects[i], shapes == nullptr ? nullptr : &shapes[i]);
    });
    return good ? made.release() : nullptr;
}

void pgkm_program_free(PgkmProgram *program)
{
    delete program;
}

PgkmReduction pgkm_program_reduction(const PgkmProgram *program, std::int32_t exact)
{
    return program->program.view(exact);
}

std::int64_t pgkm_object_width(const PgkmReduction *program, std::int32_t object)
{
    return pgkm::width_of(*program, program->objects[object]);
}

void pgkm_reduction_fault(const PgkmReduction *program, const PgkmReduced *reduced, PgkmTextError *error)
{
    const PgkmExpression *const expression =
        reduced->expression < 0 ? nullptr : &program->expressions[reduced->expression];
    const std::int32_t place = expression == nullptr ? -1 : expression->place;
    at_border(error, [&] {
        switch (reduced->fault) {
        case PGKM_FAULT_DIVISION:
            raise(sqlstate::division_by_zero, place, "division by zero");
        case PGKM_FAULT_SUBSCRIPT:
            raise(sqlstate::out_of_range, place, "subscript " + with_digits(reduced->number) + " is out of range");
        case PGKM_FAULT_CELL:
            raise(sqlstate::out_of_range, place, "cell " + with_digits(reduced->number) + " is out of range");
        case PGKM_FAULT_TOTAL:
            raise(sqlstate::out_of_range, place, "a total is out of range");
        default:
            raise(sqlstate::out_of_range, place,
                  fault_text(expression == nullptr ? PGKM_CONSTANT : expression->operation, reduced->number));
        }
    });
}
