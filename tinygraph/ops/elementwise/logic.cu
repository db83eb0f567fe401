// bitwise_and, bitwise_or, bitwise_xor of operands that broadcast together.
//
// instances: logic<Integer, BitwiseAnd>, logic<Integer, BitwiseOr>,
//            logic<Integer, BitwiseXor> for Integer in bool, unsigned char, int, long long
// operations of logic: 0
//
// Integers of any width do; the host names their types as it needs them.
//
// Which thread owns what, grid and block: the grid-stride loop of prelude.cuh, over z.
// Memory: operands of the shape of z by packs of 16 bytes (packs.cuh).  Else neighbouring threads
// write neighbouring elements of z, and read those of an operand along the axes that it has.
// Operations: one of integers an element: bound by memory, as all that broadcasts.

#include "broadcast.cuh"

#define LOGIC(name, sign)                                                                        \
    struct name {                                                                                \
        template <typename T>                                                                    \
        static __device__ __forceinline__ T of(T x, T y)                                         \
        {                                                                                        \
            return static_cast<T>(x sign y);                                                     \
        }                                                                                        \
    }

LOGIC(BitwiseAnd, &);
LOGIC(BitwiseOr, |);
LOGIC(BitwiseXor, ^);

// x, y Integer in, of shapes that broadcast to that of z (n) Integer out.
// numpy: z = x & y, x | y, x ^ y
template <typename Integer, typename Operation>
__global__ void __launch_bounds__(THREADS, 2)
logic(const Integer* __restrict__ x, const Integer* __restrict__ y, Integer* __restrict__ z,
      long long n, AXES_PARAMETERS, int x_axes, int y_axes)
{
    if (side_by_side(number_of_axes, x_axes, y_axes)) {
        const auto both = [=](Integer a, Integer b, Integer& out) { out = Operation::of(a, b); };
        by_packs(n, both, reads(x), reads(y), writes(z));
        return;
    }
    const int own[] = {x_axes, y_axes};
    each_element(n, AXES, own, [=](long long i, const long long(&at)[2]) {
        z[i] = Operation::of(x[at[0]], y[at[1]]);
    });
}
