// assigner.cpp - makes the strategy that is forced, or that choose.hpp picks.
#include "cpu/assign/assigner.hpp"

#include "cpu/assign/direct.hpp"
#include "cpu/assign/hamerly.hpp"
#include "cpu/assign/tiled.hpp"
#include "cpu/unless_short.hpp"

namespace pgkm::cpu {

template <typename T>
std::unique_ptr<Assigner<T>> make_assigner(const Rows<T> &rows, Purpose purpose)
{
    const Shape shape = shape_of(rows, purpose);
    Assignment assignment = rows.context.forced;
    if (assignment == Assignment::automatic)
        assignment = choose_assignment(shape);
    std::unique_ptr<Assigner<T>> made;
    if (assignment == Assignment::hamerly && Hamerly<T>::fits(rows))
        made = unless_short([&] { return std::make_unique<Hamerly<T>>(rows); });
    if (!made && assignment == Assignment::hamerly)
        assignment = choose_dense(shape);
    if (!made && assignment == Assignment::tiled)
        made = unless_short([&] { return std::make_unique<Tiled<T>>(rows, purpose); });
    return made ? std::move(made) : std::make_unique<Direct<T>>(rows);
}

template std::unique_ptr<Assigner<float>> make_assigner(const Rows<float> &, Purpose);
template std::unique_ptr<Assigner<double>> make_assigner(const Rows<double> &, Purpose);

} // namespace pgkm::cpu
