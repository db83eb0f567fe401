// Gather: along one axis, the elements that indices name, and the way back.
//
// instances: gather_forward<Word> for Word in unsigned char, unsigned short, unsigned int,
//            unsigned long long
// operations of gather_forward: 0
// operations of gather_backward: gy  # less where an index is out of range
// operations of gather_positions: 0
//
//     x (before, size, behind)        indices, y (before, count, behind)
//
// Forward moves bits, not numbers: one instance for each size of an element serves every dtype.
//
// Which thread owns what, grid and block: the grid-stride loop of prelude.cuh, over the output.
// Memory: neighbouring threads touch neighbours of y and of the indices; x where these point.
// Deterministic: sums are taken in the order of the indices.
//
// Backward, an element of gx looks through the `count` indices that can name it.  That is all the
// work there is where each row names one element, such as its label.  Where they are many, the host
// takes gather_positions and sums by row (scatter.cu), whose work does not grow with size * count.

#include "broadcast.cuh"

// The element of x that an index names, which stands at i of (before, count, behind); -1 for none.
__device__ __forceinline__ long long named(long long index, long long i, long long size,
                                           long long count, long long behind)
{
    long long before = i;
    const long long column = cut_off(before, behind);
    cut_off(before, count);
    return index >= 0 && index < size ? (before * size + index) * behind + column : -1;
}

// x Word in, indices (n) int64 in, y (n) Word out.  An index out of range gives `missing`.
// numpy: y = np.take_along_axis(x, indices, axis=1)
template <typename Word>
__global__ void __launch_bounds__(THREADS)
gather_forward(const Word* __restrict__ x, const long long* __restrict__ indices,
               Word* __restrict__ y, long long n, long long size, long long count,
               long long behind, Word missing)
{
    for (long long i = first_element(); i < n; i += element_stride()) {
        const long long at = named(indices[i], i, size, count, behind);
        y[i] = at < 0 ? missing : x[at];
    }
}

// gy (before, count, behind) T in, indices int64 in, gx (before, size, behind), n elements, T out.
// numpy: gx[b, l, k] = gy[b, indices[b, :, k] == l, k].sum()
template <typename T>
__global__ void __launch_bounds__(THREADS)
gather_backward(const T* __restrict__ gy, const long long* __restrict__ indices,
                T* __restrict__ gx, long long n, long long size, long long count, long long behind)
{
    for (long long i = first_element(); i < n; i += element_stride()) {
        long long before = i;
        const long long column = cut_off(before, behind);
        const long long index = cut_off(before, size);
        T sum = 0;
        for (long long j = 0; j < count; ++j) {
            const long long at = (before * count + j) * behind + column;
            if (indices[at] == index)
                sum += gy[at];
        }
        gx[i] = sum;
    }
}

// indices (n) int64 in, positions (n) int64 out: which element of x each names, -1 for none.
// numpy: b, _, k = np.indices(indices.shape); positions = (b * size + indices) * behind + k
__global__ void __launch_bounds__(THREADS)
gather_positions(const long long* __restrict__ indices, long long* __restrict__ positions,
                 long long n, long long size, long long count, long long behind)
{
    for (long long i = first_element(); i < n; i += element_stride())
        positions[i] = named(indices[i], i, size, count, behind);
}
