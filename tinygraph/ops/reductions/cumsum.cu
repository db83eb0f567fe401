// Cumulative sum along one axis, from its beginning or from its end.
//
// instances: cumulative_sums<T>, slice_sums<T> for T in float, double, long long
// operations of cumulative_sums: x
// operations of slice_sums: x
//
//     x (kept0, 1, 1, L, kept2): the sums run along L
//
// The sets of axes.cuh, but for the slices: a slice is a run of neighbours along L, so that a sum
// can be handed on from one to the next.  A group of threads owns a slice, at most 32 elements for
// each thread.  Grid (min(ceil(outputs * slices * group / 256), 1024)), block (256).
//
//     group 1      the thread adds element after element
//     group 32     the warp takes 32 neighbours at a time: five exchanges with the lane 1, 2, 4, 8,
//                  16 before, which adds what that lane has summed up so far
//     group 256    the block takes 256 neighbours at a time: the same in each warp, and the sums of
//                  the warps before it through shared memory
//
// In all three neighbouring threads read neighbouring elements, but where L <= 32 is the last axis.
// Where an axis has more than one slice, slice_sums sums them up, a launch of cumulative_sums over
// these sums gives what each slice begins with, and a last one takes that in.  x is read once, with
// several slices twice; y is written once.  One addition for each element in group 1, six to
// sixteen in the others.
// Deterministic: no two groups of threads write one element, and every sum has a fixed order.
//
// Sums begin with -0, which added to any number leaves it as it is; 0 would turn -0 into 0.
//
// Source: Hillis, Steele, "Data parallel algorithms", Communications of the ACM 29, 1986.

#include "axes.cuh"

// The elements begin <= r < end of a slice, in the order in which they are summed up.
struct Run {
    long long begin, end;
    long long first, step;  // element r stands at first + r * step

    __device__ __forceinline__ long long offset(long long r) const { return first + r * step; }
};

__device__ __forceinline__ Run run_of(const Sets& sets, const Part& part, int reverse)
{
    const long long count = sets.reduced1;
    const long long length = (count + sets.slices - 1) / sets.slices;
    Run run;
    run.begin = part.slice * length;
    run.end = run.begin + length < count ? run.begin + length : count;
    run.step = reverse ? -sets.kept2 : sets.kept2;
    run.first = sets.first(part.output) + (reverse ? (count - 1) * sets.kept2 : 0);
    return run;
}

// In each thread of the group `carry` and the values of all threads up to it; `carry` becomes the
// sum of everything.  All threads of a group must call this together.
template <typename T>
__device__ __forceinline__ T scan_group(T value, int group, T& carry, T* scratch)
{
    if (group == 1)
        return carry += value;
    value = scan_warp(value);
    if (group == 32) {
        value = carry + value;
        carry = __shfl_sync(WHOLE_WARP, value, 31);
        return value;
    }
    __syncthreads();  // whoever still reads scratch from the last turn comes first
    if (threadIdx.x % 32 == 31)
        scratch[threadIdx.x / 32] = value;
    __syncthreads();
    T before = -T(0), all = -T(0);  // added up apart: the carry is rounded once in a turn
#pragma unroll
    for (int warp = 0; warp < WARPS; ++warp) {
        if (warp == threadIdx.x / 32)
            before = all;
        all += scratch[warp];
    }
    value = carry + (before + value);
    carry += all;
    return value;
}

// x (kept0, 1, 1, L, kept2) T in; starts (outputs, slices) T in, null where there is one slice: the
// sums of all slices up to each; y of the shape of x T out.  `reverse` is 1 where sums run from the
// end: the first slice is the one at the end then.
// numpy: y = np.cumsum(x, 3); y = np.flip(np.cumsum(np.flip(x, 3), 3), 3) where `reverse`
template <typename T>
__global__ void __launch_bounds__(THREADS, 2)
cumulative_sums(const T* __restrict__ x, const T* __restrict__ starts, T* __restrict__ y,
                int reverse, SETS_PARAMETERS)
{
    __shared__ T scratch[WARPS];
    const Sets sets = SETS;
    sets.each_part([&](const Part& part) {
        const Run run = run_of(sets, part, reverse);
        T carry = part.slice > 0 ? starts[part.index - 1] : -T(0);
        for (long long begin = run.begin; begin < run.end; begin += group) {
            const long long r = begin + sets.lane();
            const bool inside = r < run.end;
            const T sum = scan_group(inside ? x[run.offset(r)] : -T(0), group, carry, scratch);
            if (inside)
                y[run.offset(r)] = sum;
        }
    });
}

// x, `reverse` as above; sums (outputs, slices) T out.
// numpy: sums[:, s] = the sum of slice s
template <typename T>
__global__ void __launch_bounds__(THREADS, 2)
slice_sums(const T* __restrict__ x, T* __restrict__ sums, int reverse, SETS_PARAMETERS)
{
    __shared__ T scratch[WARPS];
    const Sets sets = SETS;
    sets.each_part([&](const Part& part) {
        const Run run = run_of(sets, part, reverse);
        T sum = -T(0);
        for (long long r = run.begin + sets.lane(); r < run.end; r += group)
            sum += x[run.offset(r)];
        sum = sets.reduce<Sum>(sum, scratch);
        if (sets.lane() == 0)
            sums[part.index] = sum;
    });
}
