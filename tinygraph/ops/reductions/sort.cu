// Sorting along one axis: the order of the elements, by counting ranks.
//
// instances: argsort_forward<T> for T in float, double, long long, unsigned long long
// operations of argsort_forward: 0
//
//     x (before, size, behind)        order (before, count, behind), the first `count` of `size`
//
// Which thread owns what, grid and block: the grid-stride loop of prelude.cuh, over x.  A thread
// counts how many elements of its line come before its own: that is the place in `order` which it
// writes, and no other thread has the same rank, for of equals the first one comes first.
// Memory: the threads of a warp read one element at a time where the line is the last axis, else
// neighbours; a line that is read again comes from the cache.  size comparisons for each element:
// right for lines of any length, quick for those of some thousands.
// Deterministic.

#include "broadcast.cuh"

// Whether a comes before b; NaN counts as larger than every number.
template <typename T>
__device__ __forceinline__ bool comes_before(T a, T b, int descending)
{
    return descending ? a > b || (is_nan(a) && !is_nan(b)) : a < b || (is_nan(b) && !is_nan(a));
}

// x (n) T in, order (n / size * count) int64 out.
// numpy: order = np.argsort(x, axis=1, kind="stable")[:, :count]
template <typename T>
__global__ void __launch_bounds__(THREADS, 2)
argsort_forward(const T* __restrict__ x, long long* __restrict__ order, long long n,
                long long size, long long count, long long behind, int descending)
{
    for (long long i = first_element(); i < n; i += element_stride()) {
        long long before = i;
        const long long column = cut_off(before, behind);
        const long long place = cut_off(before, size);
        const T* line = x + before * size * behind + column;
        const T own = x[i];
        long long rank = 0;
        for (long long j = 0; j < size; ++j) {
            const T other = line[j * behind];
            rank += j < place ? !comes_before(own, other, descending)
                              : comes_before(other, own, descending);
        }
        if (rank < count)
            order[(before * count + rank) * behind + column] = place;
    }
}
