// How many elements are 0, or are not, over axes.
//
// instances: count_forward<T, NotZero>, count_forward<T, Zero> for T in float, double, long long, bool
// operations of count_forward: 0
//
// Which thread owns what, grid, block and how memory is read: axes.cuh.  The counts of several
// slices are added up by sum_forward of sum.cu.
// Bound by memory: each element is read once.
// Deterministic: no two groups of threads write one element.

#include "axes.cuh"

struct NotZero {
    template <typename T>
    static __device__ __forceinline__ bool of(T x)
    {
        return x != T(0);
    }
};

struct Zero {
    template <typename T>
    static __device__ __forceinline__ bool of(T x)
    {
        return x == T(0);
    }
};

// x (kept0, reduced0, kept1, reduced1, kept2) T in; counts (outputs, slices) int64 out.
// numpy: np.count_nonzero(x, (1, 3)), np.count_nonzero(x == 0, (1, 3))
template <typename T, typename Counted>
__global__ void __launch_bounds__(THREADS)
count_forward(const T* __restrict__ x, long long* __restrict__ counts, SETS_PARAMETERS)
{
    __shared__ long long scratch[WARPS];
    const Sets sets = SETS;
    sets.each_part([&](const Part& part) {
        const auto counted = [=](long long i) { return static_cast<long long>(Counted::of(x[i])); };
        const long long count = sum_of_part(sets, part, scratch, counted);
        if (sets.lane() == 0)
            counts[part.index] = count;
    });
}
