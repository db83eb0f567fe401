// less, less_equal, greater, greater_equal, equal, not_equal of operands that broadcast together.
//
// instances: compare<T, Less>, compare<T, LessEqual>, compare<T, Greater>,
//            compare<T, GreaterEqual>, compare<T, Equal>,
//            compare<T, NotEqual> for T in float, double
// instances: compare<long long, Less>, compare<long long, Equal>, compare<bool, Equal>
// operations of compare: 0
//
// Integers of any width do too; the host names their types as it needs them.
//
// Which thread owns what, grid and block: the grid-stride loop of prelude.cuh, over z.
// Memory: operands of the shape of z by packs of 16 bytes (packs.cuh).  Else neighbouring threads write
// neighbouring bytes of z, and read neighbouring elements of an operand along the axes that it has.
// Operations: one comparison an element: bound by memory, as all that broadcasts.

#include "broadcast.cuh"

#define COMPARISON(name, sign)                                                                   \
    struct name {                                                                                \
        template <typename T>                                                                    \
        static __device__ __forceinline__ bool of(T x, T y)                                      \
        {                                                                                        \
            return x sign y;                                                                     \
        }                                                                                        \
    }

COMPARISON(Less, <);
COMPARISON(LessEqual, <=);
COMPARISON(Greater, >);
COMPARISON(GreaterEqual, >=);
COMPARISON(Equal, ==);
COMPARISON(NotEqual, !=);

// x, y T in, of shapes that broadcast to that of z (n) bool out.
// numpy: z = x < y, x <= y, x > y, x >= y, x == y, x != y
template <typename T, typename Comparison>
__global__ void __launch_bounds__(THREADS, 2)
compare(const T* __restrict__ x, const T* __restrict__ y, bool* __restrict__ z, long long n,
        AXES_PARAMETERS, int x_axes, int y_axes)
{
    if (side_by_side(number_of_axes, x_axes, y_axes)) {
        const auto both = [=](T a, T b, bool& out) { out = Comparison::of(a, b); };
        by_packs(n, both, reads(x), reads(y), writes(z));
        return;
    }
    const int own[] = {x_axes, y_axes};
    each_element(n, AXES, own, [=](long long i, const long long(&at)[2]) {
        z[i] = Comparison::of(x[at[0]], y[at[1]]);
    });
}
