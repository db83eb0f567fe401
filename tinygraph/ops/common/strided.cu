// Copies between a contiguous array and strided elements of another one: what slices, permutations
// of axes and borders have in common.
//
// instances: strided_read<Word>, strided_write<Word> for Word in unsigned char, unsigned short,
//            unsigned int, unsigned long long
// operations of strided_read: 0
// operations of strided_write: 0
//
// Bits are moved, not numbers: one instance for each size of an element serves every dtype.
//
// Which thread owns what, grid and block: the grid-stride loop of prelude.cuh, over what is contiguous.
// Memory: neighbouring threads touch neighbours of the contiguous array, and elements step_0 apart
// of the other: fully coalesced on both sides where step_0 is 1.

#include "strided.cuh"

// x Word in, y (n) Word out.
// numpy: y = np.lib.stride_tricks.as_strided(x[first:], sizes, steps).reshape(-1)
template <typename Word>
__global__ void __launch_bounds__(THREADS)
strided_read(const Word* __restrict__ x, Word* __restrict__ y, long long n, long long first,
             STRIDED_PARAMETERS)
{
    const StridedAxes axes = STRIDED_AXES;
    for (long long i = first_element(); i < n; i += element_stride())
        y[i] = x[first + strided_position(axes, i)];
}

// x (n) Word in, y Word out: its other elements stay.
// numpy: np.lib.stride_tricks.as_strided(y[first:], sizes, steps)[...] = x.reshape(sizes)
template <typename Word>
__global__ void __launch_bounds__(THREADS)
strided_write(const Word* __restrict__ x, Word* __restrict__ y, long long n, long long first,
              STRIDED_PARAMETERS)
{
    const StridedAxes axes = STRIDED_AXES;
    for (long long i = first_element(); i < n; i += element_stride())
        y[first + strided_position(axes, i)] = x[i];
}
