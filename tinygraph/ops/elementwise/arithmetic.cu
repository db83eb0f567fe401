// add, sub, mul, div, pow, maximum, minimum of two operands that are broadcast together.
//
// instances: binary_forward<T, Add>, binary_forward<T, Sub>, binary_forward<T, Mul>,
//            binary_forward<T, Div>, binary_forward<T, Pow>, binary_forward<T, Maximum>,
//            binary_forward<T, Minimum> for T in float, double
// instances: binary_forward<T, Add>, binary_forward<T, Sub>, binary_forward<T, Mul>,
//            binary_forward<T, Pow>, binary_forward<T, Maximum> for T in long long
// instances: binary_forward<bool, Add>, binary_forward<bool, Mul>
// instances: binary_backward<T, Negative>, binary_backward<T, Product>,
//            binary_backward<T, Quotient>, binary_backward<T, SlopeOfDivisor>,
//            binary_backward<T, SlopeOfBase>, binary_backward<T, SlopeOfExponent>,
//            binary_backward<T, First<Maximum>>, binary_backward<T, Second<Maximum>>,
//            binary_backward<T, First<Minimum>>,
//            binary_backward<T, Second<Minimum>> for T in float, double
// operations of binary_forward<T, Add|Sub|Mul|Div|Pow>: n  # a power of 1 or 2 is none or a product
// operations of binary_forward: 0
// operations of binary_backward<T, Product|Quotient>: 2 * outputs * terms
// operations of binary_backward<T, SlopeOfDivisor>: 3 * outputs * terms
// operations of binary_backward<T, SlopeOfBase>: 5 * outputs * terms  # less where y is 0
// operations of binary_backward<T, SlopeOfExponent>: 4 * outputs * terms  # less where x is 0
// operations of binary_backward: outputs * terms
//
// Integers and bools have a forward only, in any width; the host names their types as needed.
//
// forward    A thread owns elements of z, grid and block: the grid-stride loop of prelude.cuh.
// backward   One launch for each gradient: the terms are summed as they are computed.  `lanes`
//            threads share an element of it.  Grid (ceil(outputs * lanes / 256), chunks), block
//            (256).
//
// Memory: operands of the shape of z, and single numbers as y, by packs of 16 bytes (packs.cuh).
// Else neighbouring threads touch neighbouring elements of z and gz, and of an operand along the
// axes that it has; what is repeated comes from the cache.
// Operations: one an element, and one or two more a term of a gradient; bound by memory, but for
// pow, which is an exponential of a logarithm.
//
// __launch_bounds__(256, 2): the power of doubles takes more registers than four blocks leave.

#include "broadcast.cuh"
#include "element_types.cuh"

// ---- z from x and y -------------------------------------------------------------------------

struct Add {
    FORMULA T of(T x, T y) { return static_cast<T>(modular(x) + modular(y)); }  // bools: or
};

struct Sub {
    FORMULA T of(T x, T y) { return static_cast<T>(modular(x) - modular(y)); }
};

struct Mul {
    FORMULA T of(T x, T y) { return static_cast<T>(modular(x) * modular(y)); }  // bools: and
};

struct Div {
    FORMULA T of(T x, T y) { return x / y; }
};

struct Pow {
    FORMULA T of(T x, T y)
    {
        if constexpr (is_float<T>) {
            if (y == T(2))  // the usual exponent, and far cheaper
                return x * x;
            return y == T(1) ? x : pow(x, y);
        } else {
            unsigned long long power = 1, square = modular(x);
            for (unsigned long long rest = modular(y); rest > 0; rest >>= 1) {
                if (rest & 1)
                    power *= square;
                square *= square;
            }
            return static_cast<T>(power);
        }
    }
};

// The operand that is chosen: NaN before all, then the larger one, of equal ones the first.
struct Maximum {
    FORMULA bool first_wins(T x, T y) { return x >= y || is_nan(x); }
    FORMULA T of(T x, T y) { return first_wins(x, y) ? x : y; }
};

struct Minimum {
    FORMULA bool first_wins(T x, T y) { return x <= y || is_nan(x); }
    FORMULA T of(T x, T y) { return first_wins(x, y) ? x : y; }
};

// Powers are bound by their exponentials: more code would gain nothing.
template <typename Operation> constexpr bool BY_PACKS = true;
template <> constexpr bool BY_PACKS<Pow> = false;

// x, y T in, of shapes that broadcast to that of z (n) T out.
// numpy: z = x + y, x - y, x * y, x / y, x ** y, np.maximum(x, y), np.minimum(x, y)
template <typename T, typename Operation>
__global__ void __launch_bounds__(THREADS, 2)
binary_forward(const T* __restrict__ x, const T* __restrict__ y, T* __restrict__ z, long long n,
               AXES_PARAMETERS, int x_axes, int y_axes)
{
    if constexpr (BY_PACKS<Operation>) {
        if (side_by_side(number_of_axes, x_axes, y_axes)) {
            const auto both = [=](T a, T b, T& out) { out = Operation::of(a, b); };
            by_packs(n, both, reads(x), reads(y), writes(z));
            return;
        }
        if (side_by_side(number_of_axes, x_axes)) {  // y is a single number
            const T b = y[0];
            by_packs(n, [=](T a, T& out) { out = Operation::of(a, b); }, reads(x), writes(z));
            return;
        }
    }
    const int own[] = {x_axes, y_axes};
    each_element(n, AXES, own, [=](long long i, const long long(&at)[2]) {
        z[i] = Operation::of(x[at[0]], y[at[1]]);
    });
}

// ---- terms of a gradient --------------------------------------------------------------------

// The gradient of x + y is gz itself: expand.cu sums it.

struct Negative {  // y of x - y
    static constexpr int OPERANDS = 0;
    FORMULA T of(T gz, T, T) { return -gz; }
};

struct Product {  // either factor of x * y; a is the other one
    static constexpr int OPERANDS = 1;
    FORMULA T of(T gz, T a, T) { return gz * a; }
};

struct Quotient {  // x of x / y; a is y
    static constexpr int OPERANDS = 1;
    FORMULA T of(T gz, T a, T) { return gz / a; }
};

struct SlopeOfDivisor {  // y of z = x / y
    static constexpr int OPERANDS = 2;
    FORMULA T of(T gz, T y, T z) { return -(gz / y * z); }
};

struct SlopeOfBase {  // x of x ** y
    static constexpr int OPERANDS = 2;
    FORMULA T of(T gz, T x, T y)
    {
        const T slope = y == T(0) ? T(0) : Pow::of(x, y - T(1)) * y;  // not 0 * 0 ** -1
        return slope * gz;
    }
};

struct SlopeOfExponent {  // y of z = x ** y
    static constexpr int OPERANDS = 2;
    FORMULA T of(T gz, T x, T z)
    {
        // 0 ** y is 0 or 1 where y >= 0, infinite where y < 0; in the first case not 0 * log(0).
        const bool constant = x == T(0) && fabs(z) <= T(1);
        const T slope = constant ? T(0) : z * log(x);
        return slope * gz;
    }
};

template <typename Choice> struct First {  // x of maximum(x, y) or minimum(x, y)
    static constexpr int OPERANDS = 2;
    FORMULA T of(T gz, T x, T y) { return Choice::first_wins(x, y) ? gz : T(0); }
};

template <typename Choice> struct Second {  // y of them
    static constexpr int OPERANDS = 2;
    FORMULA T of(T gz, T x, T y) { return Choice::first_wins(x, y) ? T(0) : gz; }
};

// gz T in; a, b T in, of shapes that broadcast to that of gz, or null where the slope reads fewer;
// sums (chunks, outputs) T out.
// numpy: sums[c] = terms[those of chunk c].sum(axis=the axes that are not in kept_axes)
template <typename T, typename Slope>
__global__ void __launch_bounds__(THREADS, 2)
binary_backward(const T* __restrict__ gz, const T* __restrict__ a, const T* __restrict__ b,
                T* __restrict__ sums, SUMS_PARAMETERS, AXES_PARAMETERS, int kept_axes, int a_axes,
                int b_axes)
{
    const int own[] = {ALL_AXES, a_axes, b_axes};
    sum_terms(sums, SUMS, AXES, kept_axes, own, [=](const long long(&at)[3]) -> T {
        const T left = Slope::OPERANDS > 0 ? a[at[1]] : T(0);
        const T right = Slope::OPERANDS > 1 ? b[at[2]] : T(0);
        return Slope::of(gz[at[0]], left, right);
    });
}
