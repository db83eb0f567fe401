// clip: each element brought into an interval.
//
// instances: unary_forward<T, Clip>, unary_backward<T, Clip> for T in float, double
// instances: unary_forward<long long, Clip>
// operations of unary_forward: 0
// operations of unary_backward: 0
//
// Integers of any width do too, forward; the host names their types as it needs them.  What is no
// bound is infinite, or the last of the integers.
//
// numpy: y = np.where(x < low, low, np.where(x > high, high, x))
//        gx = np.where((low <= x) & (x <= high) & (low < high), gy, 0)

#include "unary.cuh"

struct Clip {
    // NaN is neither.
    FORMULA T of(T x, T low, T high) { return x < low ? low : x > high ? high : x; }
    FORMULA T gradient(T gy, T x, T low, T high)
    {
        return low <= x && x <= high && low < high ? gy : T(0);
    }
};
