// element_kernel.hpp - one kernel for both element types, called as one function.
#pragma once

namespace pgkm::cpu {

template <typename Float, typename Double>
struct ElementKernel;

template <typename Result, typename... Float, typename... Double>
struct ElementKernel<Result(Float...), Result(Double...)> {
    Result (*of_float)(Float...);
    Result (*of_double)(Double...);

    Result operator()(Float... arguments) const { return of_float(arguments...); }
    Result operator()(Double... arguments) const { return of_double(arguments...); }
};

// Of a signature that depends on the element type: template <typename T> using Signature = R(const T *, ...).
template <template <typename> typename Signature>
using ForElements = ElementKernel<Signature<float>, Signature<double>>;

} // namespace pgkm::cpu
