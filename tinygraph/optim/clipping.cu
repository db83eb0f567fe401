// The norm of all gradients together, and gradients scaled or cut to a bound.
//
// instances: gradient_largest<T>, gradient_squares<T>, gradient_powers<T>, scale_gradient<T>,
//            clip_gradient<T> for T in float, double
// instances (PARTS=32): gradient_largest<T>, gradient_squares<T>, gradient_powers<T>,
//            scale_gradient<T>, clip_gradient<T> for T in float, double
// operations of gradient_largest: 0
// operations of largest_finish: 0
// operations of gradient_squares: 2 * n
// operations of gradient_powers: 3 * n
// operations of norm_finish: count + 3
// operations of scale_gradient: n
// operations of clip_gradient: 0
//
//     norm = largest * (sum of (|g| / largest)^power)^(1 / power),    largest = max |g|
//
// The largest number is taken out first, so that no power over- or underflows: in four steps,
// gradient_largest for all gradients, largest_finish, gradient_powers for all gradients,
// norm_finish.  The square of a float is within the range of doubles: for the usual norm,
// gradient_squares and norm_finish do, and each gradient is read once.
//
// How a launch takes many gradients, which thread owns what, grid, block: parameters.cuh.  A block
// leaves one partial result in its place of `partials`, which all gradients share; one block of 256
// threads puts them together.  The norm stays in device memory until the host reads it.
//
// Memory: packs of 16 bytes.  Each gradient is read once or twice for the norm, and is read and
// written once more where it changes.  Sums are of doubles: 2 or 3 operations an element for power
// 2, one call of pow for another power.
// Deterministic: what a block owns depends on sizes alone, and every sum has a fixed order.

#include "parameters.cuh"
#include "reduce.cuh"

// The larger of two numbers, and NaN where one is NaN.
struct LargestOrNan {
    FORMULA T combine(T a, T b) { return b > a || is_nan(b) ? b : a; }
};

// grad (n) T in, partials (gridDim.x) double out.
// numpy: of the elements of each block, np.max(np.abs(grad))
template <typename T>
__global__ void __launch_bounds__(THREADS)
gradient_largest(GRADIENTS, SIZES, double* __restrict__ partials)
{
    __shared__ T scratch[WARPS];
    const Share own = own_share(most_blocks, ALL(n));
    const auto grad = reads(of_part(own.part, ALL(grad)));
    T largest = 0;
    by_packs(own, [&](T g) { largest = LargestOrNan::combine(largest, fabs(g)); }, grad);
    largest = reduce_group<LargestOrNan, THREADS>(largest, scratch);
    if (threadIdx.x == 0)
        partials[blockIdx.x] = largest;
}

// partials (count) double in, largest (1) double out.  Grid (1).
// numpy: largest = np.max(partials)
__global__ void __launch_bounds__(THREADS)
largest_finish(const double* __restrict__ partials, double* __restrict__ largest, long long count)
{
    __shared__ double scratch[WARPS];
    double all = 0;
    for (long long i = threadIdx.x; i < count; i += THREADS)
        all = LargestOrNan::combine(all, partials[i]);
    all = reduce_group<LargestOrNan, THREADS>(all, scratch);
    if (threadIdx.x == 0)
        largest[0] = all;
}

// grad (n) T in, partials (gridDim.x) double out.
// numpy: of the elements of each block, (grad.astype(np.float64) ** 2).sum()
template <typename T>
__global__ void __launch_bounds__(THREADS)
gradient_squares(GRADIENTS, SIZES, double* __restrict__ partials)
{
    __shared__ double scratch[WARPS];
    const Share own = own_share(most_blocks, ALL(n));
    const auto grad = reads(of_part(own.part, ALL(grad)));
    double sum = 0;
    by_packs(own, [&](T g) { sum += static_cast<double>(g) * static_cast<double>(g); }, grad);
    sum = reduce_group<Sum, THREADS>(sum, scratch);
    if (threadIdx.x == 0)
        partials[blockIdx.x] = sum;
}

// grad (n) T in, largest (1) double in, partials (gridDim.x) double out.
// numpy: of the elements of each block, ((np.abs(grad) / largest) ** power).sum()
template <typename T>
__global__ void __launch_bounds__(THREADS, 2)
gradient_powers(GRADIENTS, SIZES, const double* __restrict__ largest,
                double* __restrict__ partials, double power)
{
    __shared__ double scratch[WARPS];
    const Share own = own_share(most_blocks, ALL(n));
    const auto grad = reads(of_part(own.part, ALL(grad)));
    const double unit = largest[0];
    double sum = 0;
    const auto add = [&](T g) {
        const double ratio = fabs(static_cast<double>(g)) / unit;
        sum += power == 2.0 ? ratio * ratio : pow(ratio, power);
    };
    by_packs(own, add, grad);
    sum = reduce_group<Sum, THREADS>(sum, scratch);
    if (threadIdx.x == 0)
        partials[blockIdx.x] = sum;
}

// partials (count) double in, largest (1) double in or null: 1, norm (1) double out.  Grid (1).
// Where the largest number is 0, infinite or NaN, so is the norm.
// numpy: norm = largest * partials.sum() ** (1 / power)
__global__ void __launch_bounds__(THREADS)
norm_finish(const double* __restrict__ partials, const double* __restrict__ largest,
            double* __restrict__ norm, long long count, double power)
{
    __shared__ double scratch[WARPS];
    double sum = 0;
    for (long long i = threadIdx.x; i < count; i += THREADS)
        sum += partials[i];
    sum = reduce_group<Sum, THREADS>(sum, scratch);
    if (threadIdx.x > 0)
        return;
    const double unit = largest ? largest[0] : 1.0;
    const bool scales = unit > 0.0 && unit < INFINITY;
    norm[0] = scales ? unit * pow(sum, 1.0 / power) : unit;
}

// grad (n) T in and out.
// numpy: grad *= factor
template <typename T>
__global__ void __launch_bounds__(THREADS)
scale_gradient(STATE(grad), SIZES, T factor)
{
    const Share own = own_share(most_blocks, ALL(n));
    const auto grad = updates(of_part(own.part, ALL(grad)));
    by_packs(own, [=](T& g) { g *= factor; }, grad);
}

// grad (n) T in and out.  NaN stays NaN.
// numpy: np.clip(grad, -limit, limit, out=grad)
template <typename T>
__global__ void __launch_bounds__(THREADS)
clip_gradient(STATE(grad), SIZES, T limit)
{
    const Share own = own_share(most_blocks, ALL(n));
    const auto grad = updates(of_part(own.part, ALL(grad)));
    by_packs(own, [=](T& g) { g = g > limit ? limit : g < -limit ? -limit : g; }, grad);
}
