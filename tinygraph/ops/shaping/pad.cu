// Pad: an array within a border of one value.  (Backward cuts the border off: strided.cu.)
//
// instances: pad_forward<Word> for Word in unsigned char, unsigned short, unsigned int,
//            unsigned long long
// operations of pad_forward: 0
//
// Bits are moved, not numbers: one instance for each size of an element serves every dtype.
//
// The host merges an axis without a border with the axis before it: images (N, C, H, W) padded in
// height and width have the axes NC, H and W.  A launch takes up to four such axes; axis 0 is the
// innermost.
//
// Which thread owns what, grid and block: the grid-stride loop of prelude.cuh, over y.
// Memory: neighbouring threads write neighbours, and read neighbours but where a row ends.

#include "broadcast.cuh"

constexpr int MOST_PADDED = 4;  // the same number stands in ops/shaping/pad.py

// x (inner_3, inner_2, inner_1, inner_0) Word in, y (outer_3, ..., outer_0), n elements, Word out.
// Axis a of y has before_a elements of border, then those of x.
// numpy: y = np.full(outer, value); y[before_3:before_3 + inner_3, ...] = x
template <typename Word>
__global__ void __launch_bounds__(THREADS)
pad_forward(const Word* __restrict__ x, Word* __restrict__ y, long long n, Word value,
            FOUR_OF(long long, inner), FOUR_OF(long long, outer), FOUR_OF(long long, before))
{
    const long long inner[] = {FOUR(inner)};
    const long long outer[] = {FOUR(outer)};
    const long long before[] = {FOUR(before)};
    for (long long i = first_element(); i < n; i += element_stride()) {
        long long rest = i, at = 0, step = 1;
        bool inside = true;
#pragma unroll
        for (int axis = 0; axis < MOST_PADDED; ++axis) {
            const long long index = cut_off(rest, outer[axis]) - before[axis];
            inside = inside && index >= 0 && index < inner[axis];
            at += index * step;
            step *= inner[axis];
        }
        y[i] = inside ? x[at] : value;
    }
}
