// Maximum and minimum over axes, forward and backward.
//
// instances: extreme_forward<T, Larger, First>,
//            extreme_forward<T, Smaller, First> for T in float, double, long long, unsigned long long
// instances: extreme_forward<T, Larger, Ties>,
//            extreme_forward<T, Smaller, Ties> for T in float, double
// operations of extreme_forward: 0
// operations of extreme_backward: gy
//
// Which thread owns what, grid, block and how memory is read: axes.cuh.  A thread carries the
// leading element of what it has seen, and a mark: the place of the first of equals, or their number.
// Both are the same in whatever order threads meet.
// Bound by memory: forward reads each element once; backward reads it again, and writes one.
// Deterministic.

#include "axes.cuh"

// Comparisons in which NaN beats every number.
struct Larger {
    FORMULA bool beats(T a, T b) { return a > b || (is_nan(a) && !is_nan(b)); }
};

struct Smaller {
    FORMULA bool beats(T a, T b) { return a < b || (is_nan(a) && !is_nan(b)); }
};

// What a leader tells of the elements that are equal to it: which of them comes first in the set, or
// how many there are.
struct First {
    __device__ __forceinline__ static long long of(long long place) { return place; }
    __device__ __forceinline__ static long long join(long long a, long long b) { return a < b ? a : b; }
};

struct Ties {
    __device__ __forceinline__ static long long of(long long) { return 1; }
    __device__ __forceinline__ static long long join(long long a, long long b) { return a + b; }
};

template <typename T>
struct Leader {
    T value;
    long long mark;  // -1 for the leader of no element
};

template <typename Order, typename Mark, typename T>
__device__ __forceinline__ Leader<T> leader_of(const Leader<T>& a, const Leader<T>& b)
{
    if (b.mark < 0 || (a.mark >= 0 && Order::beats(a.value, b.value)))
        return a;
    if (a.mark < 0 || Order::beats(b.value, a.value))
        return b;
    return {a.value, Mark::join(a.mark, b.mark)};
}

// The leader of a group of threads, in each of them.  `values` and `marks` hold WARPS elements.
template <typename Order, typename Mark, typename T>
__device__ __forceinline__ Leader<T> leader_of_group(Leader<T> leader, int group, T* values,
                                                     long long* marks)
{
    if (group == 1)
        return leader;
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) {
        Leader<T> other;
        other.value = __shfl_xor_sync(WHOLE_WARP, leader.value, distance);
        other.mark = __shfl_xor_sync(WHOLE_WARP, leader.mark, distance);
        leader = leader_of<Order, Mark>(leader, other);
    }
    if (group == 32)
        return leader;
    __syncthreads();  // whoever still reads from the last turn comes first
    if (threadIdx.x % 32 == 0) {
        values[threadIdx.x / 32] = leader.value;
        marks[threadIdx.x / 32] = leader.mark;
    }
    __syncthreads();
    leader = {values[0], marks[0]};
    for (int warp = 1; warp < WARPS; ++warp)
        leader = leader_of<Order, Mark>(leader, Leader<T>{values[warp], marks[warp]});
    return leader;
}

// x (kept0, reduced0, kept1, reduced1, kept2) T in; x_marks of the same shape int64 in, or null in
// the first stage: what each element tells of a part of its set.  y (outputs, slices) T out; marks
// (outputs, slices) int64 out, or null: where in its set the first maximum or minimum stands, or
// how many there are.
// numpy: y = x.max((1, 3)); marks = argmax over the reduced axes in row-major order, or
// (x == y).sum((1, 3)); or min, argmin
template <typename T, typename Order, typename Mark>
__global__ void __launch_bounds__(THREADS, 2)
extreme_forward(const T* __restrict__ x, const long long* __restrict__ x_marks,
                T* __restrict__ y, long long* __restrict__ marks, SETS_PARAMETERS)
{
    __shared__ T value_scratch[WARPS];
    __shared__ long long mark_scratch[WARPS];
    const Sets sets = SETS;
    sets.each_part([&](const Part& part) {
        Leader<T> leader = {T(0), -1};
        for (Walk at = sets.walk(part); at.inside(); at.next()) {
            const long long mark = x_marks ? x_marks[at.offset] : Mark::of(at.r);
            leader = leader_of<Order, Mark>(leader, Leader<T>{x[at.offset], mark});
        }
        leader = leader_of_group<Order, Mark>(leader, sets.group, value_scratch, mark_scratch);
        if (sets.lane() == 0) {
            y[part.index] = leader.value;
            if (marks)
                marks[part.index] = leader.mark;
        }
    });
}

// gy, y (outputs) T in, x (kept0, reduced0, kept1, reduced1, kept2) T in, ties (outputs) int64 in: how
// many elements of a set are equal to y.  gx of the shape of x T out.
// numpy: gx = np.where((x == y) | np.isnan(x), gy / ties, 0)
template <typename T>
__global__ void __launch_bounds__(THREADS, 2)
extreme_backward(const T* __restrict__ gy, const T* __restrict__ x, const T* __restrict__ y,
                 const long long* __restrict__ ties, T* __restrict__ gx, SETS_PARAMETERS)
{
    const Sets sets = SETS;
    sets.each_part([&](const Part& part) {
        const T extreme = y[part.output];
        const T share = gy[part.output] / T(ties[part.output]);
        for (Walk at = sets.walk(part); at.inside(); at.next()) {
            const T v = x[at.offset];
            gx[at.offset] = v == extreme || is_nan(v) ? share : T(0);  // of a NaN y is NaN
        }
    });
}
