#include "backend/cpu/assigner.hpp"

#include "backend/cpu/choose.hpp"
#include "backend/cpu/direct.hpp"
#include "backend/cpu/hamerly.hpp"
#include "backend/cpu/tiled.hpp"

namespace pgkm::cpu {

template <typename T>
std::unique_ptr<Assigner<T>> make_assigner(const Rows<T> &rows, Purpose)
{
    switch (choose_assignment(rows.context.strategy.assignment, {rows.n, rows.d, rows.k})) {
    case Assignment::tiled:
        return std::make_unique<Tiled<T>>(rows);
    case Assignment::hamerly:
        if (Hamerly<T>::fits(rows))
            return std::make_unique<Hamerly<T>>(rows);
        return std::make_unique<Tiled<T>>(rows);
    default:
        return std::make_unique<Direct<T>>(rows);
    }
}

template std::unique_ptr<Assigner<float>> make_assigner(const Rows<float> &, Purpose);
template std::unique_ptr<Assigner<double>> make_assigner(const Rows<double> &, Purpose);

} // namespace pgkm::cpu
