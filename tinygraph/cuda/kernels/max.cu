// Maximum and minimum over axes, forward and backward.
//
// instances: extreme_forward<T, Larger>,
//            extreme_forward<T, Smaller> for T in float, double, long long, unsigned long long
// operations of extreme_forward: 0
// operations of extreme_backward: 0
//
// Which thread owns what, grid, block and how memory is read: axes.cuh.  A thread carries the
// leading element of what it has seen, with its place in the set, so that the first of equals wins
// in whatever order threads meet.
// Bound by memory: forward reads each element once; backward writes one element for each output.
// Deterministic.

#include "axes.cuh"

// Comparisons in which NaN beats every number.
struct Larger {
    FORMULA bool beats(T a, T b) { return a > b || (is_nan(a) && !is_nan(b)); }
};

struct Smaller {
    FORMULA bool beats(T a, T b) { return a < b || (is_nan(a) && !is_nan(b)); }
};

template <typename T>
struct Leader {
    T value;
    long long place;  // in the set; -1 for the leader of no element
};

template <typename Order, typename T>
__device__ __forceinline__ Leader<T> leader_of(const Leader<T>& a, const Leader<T>& b)
{
    if (b.place < 0 || (a.place >= 0 && Order::beats(a.value, b.value)))
        return a;
    if (a.place < 0 || Order::beats(b.value, a.value))
        return b;
    return a.place < b.place ? a : b;
}

// The leader of a group of threads, in each of them.  `values` and `places` hold WARPS elements.
template <typename Order, typename T>
__device__ __forceinline__ Leader<T> leader_of_group(Leader<T> leader, int group, T* values,
                                                     long long* places)
{
    if (group == 1)
        return leader;
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) {
        Leader<T> other;
        other.value = __shfl_xor_sync(WHOLE_WARP, leader.value, distance);
        other.place = __shfl_xor_sync(WHOLE_WARP, leader.place, distance);
        leader = leader_of<Order>(leader, other);
    }
    if (group == 32)
        return leader;
    __syncthreads();  // whoever still reads from the last turn comes first
    if (threadIdx.x % 32 == 0) {
        values[threadIdx.x / 32] = leader.value;
        places[threadIdx.x / 32] = leader.place;
    }
    __syncthreads();
    leader = {values[0], places[0]};
    for (int warp = 1; warp < WARPS; ++warp)
        leader = leader_of<Order>(leader, Leader<T>{values[warp], places[warp]});
    return leader;
}

// x (kept0, reduced0, kept1, reduced1, kept2) T in; x_places of the same shape int64 in, or null in
// the first stage: where in its set an element stood at first.  y (outputs, slices) T out; places
// (outputs, slices) int64 out, or null: where in its set the first maximum or minimum stands.
// numpy: y = x.max((1, 3)); places = argmax over the reduced axes in row-major order, or min, argmin
template <typename T, typename Order>
__global__ void __launch_bounds__(THREADS, 2)
extreme_forward(const T* __restrict__ x, const long long* __restrict__ x_places,
                T* __restrict__ y, long long* __restrict__ places, SETS_PARAMETERS)
{
    __shared__ T value_scratch[WARPS];
    __shared__ long long place_scratch[WARPS];
    const Sets sets = SETS;
    sets.each_part([&](const Part& part) {
        Leader<T> leader = {T(0), -1};
        for (Walk at = sets.walk(part); at.inside(); at.next()) {
            const long long place = x_places ? x_places[at.offset] : at.r;
            leader = leader_of<Order>(leader, Leader<T>{x[at.offset], place});
        }
        leader = leader_of_group<Order>(leader, sets.group, value_scratch, place_scratch);
        if (sets.lane() == 0) {
            y[part.index] = leader.value;
            if (places)
                places[part.index] = leader.place;
        }
    });
}

// gy (outputs) T in, places (outputs) int64 in, gx (kept0, reduced0, kept1, reduced1,
// kept2) T out, zeros before.  A thread owns output after output.
// Grid (min(ceil(outputs / 256), 1024)), block (256).
// numpy: gx[k, places[k]] = gy[k]
template <typename T>
__global__ void __launch_bounds__(THREADS)
extreme_backward(const T* __restrict__ gy, const long long* __restrict__ places,
                 T* __restrict__ gx, long long kept0, long long reduced0, long long kept1,
                 long long reduced1, long long kept2)
{
    const Sets sets = {kept0, reduced0, kept1, reduced1, kept2, 1, 1};
    for (long long k = first_element(); k < sets.outputs(); k += element_stride())
        gx[sets.first(k) + sets.offset(places[k])] = gy[k];
}
