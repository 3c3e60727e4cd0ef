// key_kernels.cpp - keys of rows: two products of 32 x 32 bits for each 64-bit lane.
#include "cpu/seed/key_kernels.hpp"

#define HWY_TARGET_INCLUDE "cpu/seed/key_kernels.cpp"
#include "cpu/kernels/per_target.hpp"

HWY_BEFORE_NAMESPACE();
namespace pgkm::cpu::HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR
inline constexpr hn::ScalableTag<std::uint32_t> words;
inline constexpr hn::RepartitionToWide<decltype(words)> wide;
inline constexpr int word_lanes = static_cast<int>(hn::MaxLanes(words));

// The bits of a vector of values, those of +0 for -0.
HWY_INLINE auto load_words(const float *from)
{
    const hn::RebindToFloat<decltype(words)> floats;
    const auto bits = hn::BitCast(words, hn::LoadU(floats, from));
    return hn::IfThenZeroElse(hn::Eq(bits, hn::Set(words, 0x80000000u)), bits);
}
HWY_INLINE auto load_words(const double *from)
{
    const hn::RebindToFloat<decltype(wide)> doubles;
    const auto bits = hn::BitCast(wide, hn::LoadU(doubles, from));
    return hn::BitCast(words,
                       hn::IfThenZeroElse(hn::Eq(bits, hn::Set(wide, std::uint64_t{0x8000000000000000u})), bits));
}
#endif

template <typename T>
void keys(const T *values, std::int64_t n, std::int32_t d, const KeyMarks &marks, std::uint64_t *out)
{
    for (std::int64_t row = 0; row < n; ++row, values += d) {
        std::uint64_t sum = 0;
        std::int32_t f = 0;
#if HWY_TARGET != HWY_SCALAR
        constexpr int words_each = sizeof(T) / 4, step = word_lanes / words_each;
        auto sums = hn::Zero(wide);
        for (; f + step <= d; f += step) {
            const auto word = load_words(values + f);
            const auto left = hn::Xor(word, hn::LoadU(words, marks.low.data() + f * words_each));
            const auto right = hn::Add(word, hn::LoadU(words, marks.high.data() + f * words_each));
            const auto odd_left = hn::BitCast(words, hn::ShiftRight<32>(hn::BitCast(wide, left)));
            const auto odd_right = hn::BitCast(words, hn::ShiftRight<32>(hn::BitCast(wide, right)));
            sums = hn::Add(sums, hn::Add(hn::MulEven(left, right), hn::MulEven(odd_left, odd_right)));
        }
        sum = hn::GetLane(hn::SumOfLanes(wide, sums));
#endif
        for (; f < d; ++f)
            sum += feature_term(values[f], f);
        out[row] = finish_key(sum);
    }
    (void)marks;
}

} // namespace pgkm::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

PGKM_KERNELS(KeyKernels, key_kernels, {keys<float>, keys<double>})
