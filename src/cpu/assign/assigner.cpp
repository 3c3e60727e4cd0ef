// assigner.cpp - makes the strategy that is forced, or that choose.hpp picks.
#include "cpu/assign/assigner.hpp"

#include "cpu/assign/direct.hpp"
#include "cpu/assign/hamerly.hpp"
#include "cpu/assign/tiled.hpp"

namespace pgkm::cpu {
namespace {

// Where rows of few marks and numbers (encode/bits.hpp) would take less time than exact distances, or than distances to
// few centroids, they are looked at.
template <typename T>
Assignment choose_for(const Rows<T> &rows, Shape shape)
{
    const Assignment chosen = choose_assignment(shape);
    if (rows.data == nullptr || !shape.repeats || (chosen != Assignment::direct && !has_few(shape)))
        return chosen;
    shape.scored = 1;
    if (has_few(shape) || choose_assignment(shape) != Assignment::tiled)
        return chosen;
    const auto bits = EncodedRows<T>::of(rows)->bits(rows);
    if (!bits)
        return chosen;
    shape.scored = bits->work();
    return choose_assignment(shape);
}

template <typename T>
std::unique_ptr<Assigner<T>> make_assigner(const Rows<T> &rows, Purpose purpose)
{
    const Shape shape = shape_of(rows, purpose);
    Assignment assignment = rows.context.forced;
    if (assignment == Assignment::automatic)
        assignment = choose_for(rows, shape);
    if (assignment == Assignment::hamerly && !may_bound(shape))
        assignment = choose_dense(shape);
    if (assignment == Assignment::hamerly)
        return std::make_unique<Hamerly<T>>(rows, purpose);
    if (assignment == Assignment::tiled)
        return std::make_unique<Tiled<T>>(rows, purpose);
    return std::make_unique<Direct<T>>(rows);
}

} // namespace

template <typename T>
void assign_with(std::unique_ptr<Assigner<T>> &assigner, const Rows<T> &rows, Purpose purpose,
                 const std::function<void(Assigner<T> &)> &body)
{
    try {
        if (!assigner)
            assigner = make_assigner(rows, purpose);
        return body(*assigner);
    } catch (const Error &error) {
        if (error.status() != PGKM_LIMIT)
            throw;
    }
    assigner.reset();
    assigner = std::make_unique<Direct<T>>(rows);
    body(*assigner);
}

template void assign_with(std::unique_ptr<Assigner<float>> &, const Rows<float> &, Purpose,
                          const std::function<void(Assigner<float> &)> &);
template void assign_with(std::unique_ptr<Assigner<double>> &, const Rows<double> &, Purpose,
                          const std::function<void(Assigner<double> &)> &);

} // namespace pgkm::cpu
