// Sums over the parts of up to four arrays, in one launch.
//
// A gradient that several blocks add up is written in parts, one for each chunk of the work, so that
// no two blocks write one element.  An op leaves the parts of all its gradients to this kernel.
//
// sums_of_parts
//   A thread owns one element of one of the arrays, which lies `parts` times one after the other.
//   Grid (ceil(sum of the sizes / 256)); block 256.
//     part_i (parts, size_i) T or null   read          sum_i (size_i) T or null   written
//   An array that is not there has size 0.
//   Memory: neighbours read and write neighbours.
//   Deterministic: one thread adds the parts in their order.
//   numpy: sum_i = part_i.sum(axis=0)
//
// operations of sums_of_parts: parts * (size_0 + size_1 + size_2 + size_3)
//
// instances: sums_of_parts<T> for T in float, double
#include "prelude.cuh"

template <typename T>
__global__ void __launch_bounds__(THREADS)
sums_of_parts(FOUR_OF(const T* __restrict__, part), FOUR_OF(T* __restrict__, sum),
              FOUR_OF(int, size), int parts)
{
    const T* from[] = {FOUR(part)};
    T* to[] = {FOUR(sum)};
    const int sizes[] = {FOUR(size)};
    int i = blockIdx.x * THREADS + threadIdx.x;
#pragma unroll
    for (int array = 0; array < 4; ++array) {
        if (0 <= i && i < sizes[array]) {
            T total = 0;
            for (int part = 0; part < parts; ++part)
                total += from[array][(long long)part * sizes[array] + i];
            to[array][i] = total;
        }
        i -= sizes[array];
    }
}
