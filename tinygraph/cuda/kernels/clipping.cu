// The norm of all gradients together, and gradients scaled or cut to a bound.
//
// operations of gradient_largest: 0
// operations of largest_finish: 0
// operations of gradient_powers: 3 * (n_0 + n_1 + n_2 + n_3 + n_4 + n_5 + n_6 + n_7)
// operations of norm_finish: count + 3
// operations of scale_gradient: (n_0 + n_1 + n_2 + n_3 + n_4 + n_5 + n_6 + n_7)
// operations of clip_gradient: 0
//
//     norm = largest * (sum of (|g| / largest)^power)^(1 / power),    largest = max |g|
//
// The largest number is taken out first, so that no power over- or underflows.
//
// In four steps: gradient_largest for all gradients, largest_finish, gradient_powers for all
// gradients, norm_finish.  A launch of the first and third takes eight gradients, each n elements;
// see parameters.cuh.  A thread owns elements first, first + stride, ... of one of them; grid (the
// sum of min(ceil(n_p / 256), most_blocks)), block (256).  A block leaves one partial result in its
// place of `partials`, which all gradients share; one block of 256 threads puts them together.
// The norm stays in device memory until the host reads it.
//
// Memory: neighbouring threads touch neighbouring elements: fully coalesced.  Each gradient is read
// twice for the norm, and is read and written once more where it changes.  Sums are of doubles:
// about 3 operations an element for power 2, one call of pow for another power.
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
    const Share own = own_share(EIGHT(n), most_blocks);
    const T* const grad = of_part(own.part, EIGHT(grad));
    T largest = 0;
    for (long long i = own.first; i < own.n; i += own.stride)
        largest = LargestOrNan::combine(largest, grad[i] < T(0) ? -grad[i] : grad[i]);
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

// grad (n) T in, largest (1) double in, partials (gridDim.x) double out.
// numpy: of the elements of each block, ((np.abs(grad) / largest) ** power).sum()
template <typename T>
__global__ void __launch_bounds__(THREADS)
gradient_powers(GRADIENTS, SIZES, const double* __restrict__ largest,
                double* __restrict__ partials, double power)
{
    __shared__ double scratch[WARPS];
    const Share own = own_share(EIGHT(n), most_blocks);
    const T* const grad = of_part(own.part, EIGHT(grad));
    const double unit = largest[0];
    double sum = 0;
    for (long long i = own.first; i < own.n; i += own.stride) {
        const double ratio = fabs(static_cast<double>(grad[i])) / unit;
        sum += power == 2.0 ? ratio * ratio : pow(ratio, power);
    }
    sum = reduce_group<Sum, THREADS>(sum, scratch);
    if (threadIdx.x == 0)
        partials[blockIdx.x] = sum;
}

// partials (count) double in, largest (1) double in, norm (1) double out.  Grid (1).  Where the
// largest number is 0, infinite or NaN, so is the norm.
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
    const double unit = largest[0];
    const bool scales = unit > 0.0 && unit < INFINITY;
    if (threadIdx.x == 0)
        norm[0] = scales ? unit * pow(sum, 1.0 / power) : unit;
}

// grad (n) T in and out.
// numpy: grad *= factor
template <typename T>
__global__ void __launch_bounds__(THREADS)
scale_gradient(STATE(grad), SIZES, T factor)
{
    const Share own = own_share(EIGHT(n), most_blocks);
    T* const grad = of_part(own.part, EIGHT(grad));
    for (long long i = own.first; i < own.n; i += own.stride)
        grad[i] *= factor;
}

// grad (n) T in and out.  NaN stays NaN.
// numpy: np.clip(grad, -limit, limit, out=grad)
template <typename T>
__global__ void __launch_bounds__(THREADS)
clip_gradient(STATE(grad), SIZES, T limit)
{
    const Share own = own_share(EIGHT(n), most_blocks);
    T* const grad = of_part(own.part, EIGHT(grad));
    for (long long i = own.first; i < own.n; i += own.stride) {
        const T g = grad[i];
        grad[i] = g > limit ? limit : g < -limit ? -limit : g;
    }
}
