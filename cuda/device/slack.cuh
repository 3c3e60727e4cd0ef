// slack.cuh - how long a row provably keeps its label without being read again.
//
// Method: Hamerly 2010, "Making k-means even faster", with one number per row. Let d1 be the distance
// of a row from its nearest centroid and d2 that from the next one, when both were last computed. A
// centroid that moves by m changes a distance by at most m, so that the gap d2 - d1 shrinks in an
// iteration by at most the way of the row's own centroid and the longest way of any other, hence by
// at most the sum of the two longest ways, whichever centroid is its own. The sum of those over
// the iterations of a fit is its drift A. A row seen at drift A with a gap of at least `slack`
// expires at E = A + slack: as long as the drift is below E, its label cannot have changed.
// Nothing is written for a row at rest, and its label need not be known.
//
// Every rounding is to the safe side: drift up, slack and E down. What is not a number, infinite or
// tied gives no slack, and a comparison with NaN does not rest. The contract's D is rounded, too: by at most
// a share of (d + 3) 2^-53, so that D decides for the nearer centroid where d2 - d1 exceeds a share of
// 1.01 (d + 3) 2^-53 of d1. The slack is less by 2^-40 d1 (d up to 4,096), and since d1 grows by no
// more than the drift, the share of its growth is within the 2^-20 by which every way is lengthened. Squared
// differences of float32 values are at least 2^-298: in float64 none is lost.
//
// Compiled for the host as well, for its test.
#pragma once

#include <cmath>

#include "numeric/platform.hpp"

namespace pgkm::cuda {

// a + b, rounded up.
PGKM_HD inline float add_above(float a, float b)
{
#ifdef __CUDA_ARCH__
    return __fadd_ru(a, b);
#else
    const float sum = a + b, most = a > b ? a : b, least = a > b ? b : a;
    return sum - most < least ? ::nextafterf(sum, INFINITY) : sum; // a, b >= 0: sum - most is exact
#endif
}

// a + b, rounded down.
PGKM_HD inline float add_below(float a, float b)
{
#ifdef __CUDA_ARCH__
    return __fadd_rd(a, b);
#else
    const float sum = a + b, most = a > b ? a : b, least = a > b ? b : a;
    return sum - most > least ? ::nextafterf(sum, 0.0f) : sum;
#endif
}

// At least the square root, and at most 1 + 2^-19 times it.
PGKM_HD inline float root_above(float square)
{
#ifdef __CUDA_ARCH__
    float root;
    asm("sqrt.approx.f32 %0, %1;" : "=f"(root) : "f"(square));
#else
    const float root = ::sqrtf(square);
#endif
    return root * (1.0f + 0x1p-20f);
}

// At most a / b up to a share of 2^-20; 0 where b is beyond 2^126.
PGKM_HD inline float quotient_near(float a, float b)
{
#ifdef __CUDA_ARCH__
    return __fdividef(a, b);
#else
    return a / b;
#endif
}

// At most d2 - d1, given squares_apart <= d2^2 - d1^2 and upper bounds of d1^2 and d2^2; 0 where nothing is sure.
// d2 - d1 = (d2^2 - d1^2) / (d1 + d2) does not lose the digits that a difference of roots would.
PGKM_HD inline float slack_of(float squares_apart, float nearest_square, float next_square)
{
    const float nearest = root_above(nearest_square);
    const float roots = (nearest + root_above(next_square)) * (1.0f + 0x1p-20f) + 0x1p-60f;
    const float slack = quotient_near(squares_apart, roots) * (1.0f - 0x1p-18f) - 0x1p-39f * nearest;
    return slack > 0x1p-100f && slack < INFINITY ? slack : 0.0f; // below that, shares of it vanish
}

// The drift at which a row seen at `drift` expires. It rests while rests(the fit's drift, it).
PGKM_HD inline float expiry_of(float drift, float slack)
{
    return add_below(drift, slack);
}
PGKM_HD inline bool rests(float drift, float expiry)
{
    return drift < expiry;
}

// Rows that were never seen, or of which nothing is known any more. All bits are zero.
inline constexpr float expired = 0.0f;

// The two longest of the ways that the centroids went in an iteration.
struct Ways {
    float longest = 0.0f;
    float next = 0.0f;

    // square: D of a centroid's old and new place.
    PGKM_HD void take(double square)
    {
        const float way = static_cast<float>(::sqrt(square)) * (1.0f + 0x1p-19f);
        if (!(way <= longest)) { // NaN is kept
            next = longest;
            longest = way;
        } else if (!(way <= next)) {
            next = way;
        }
    }
    PGKM_HD void take(const Ways &other)
    {
        const bool longer = !(other.longest <= longest);
        const float between = longer ? longest : other.longest, after = longer ? other.next : next;
        longest = longer ? other.longest : longest;
        next = !(between <= after) ? between : after;
    }
    // The fit's drift after the iteration.
    PGKM_HD float after(float drift) const { return add_above(drift, add_above(longest, next)); }
};

} // namespace pgkm::cuda
