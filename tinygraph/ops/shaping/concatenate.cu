// Concatenate and stack: up to eight arrays side by side, and their gradients.
//
// instances: concatenate_forward<Word>, concatenate_backward<Word> for Word in unsigned char,
//            unsigned short, unsigned int, unsigned long long
// operations of concatenate_forward: 0
// operations of concatenate_backward: 0
//
// Bits are moved, not numbers: one instance for each size of an element serves every dtype.
//
// Seen from the axis that they are joined along, arrays are matrices: the axes before it are rows,
// it and the axes behind it are columns.
//
//     part p       (rows, width_p)
//     whole        (rows, columns), the columns of the parts side by side
//
// A launch takes eight parts, which lie in the columns from `first` on; more parts take more
// launches.
//
// Which thread owns what, grid and block: the grid-stride loop of prelude.cuh, over all parts.
// Memory: neighbouring threads touch neighbours on both sides, but where a part ends.

#include "broadcast.cuh"

constexpr int PARTS = 8;  // the same number stands in ops/shaping/concatenate.py

// Which part has the column: the column is then counted from the first one of that part.
__device__ __forceinline__ int part_of(const long long (&width)[PARTS], long long& column)
{
    int part = 0;
#pragma unroll
    for (int p = 0; p < PARTS - 1; ++p) {
        if (part == p && column >= width[p]) {
            column -= width[p];
            part = p + 1;
        }
    }
    return part;
}

// The element p of eight; an index that is not known in advance would move the array to memory.
template <typename V>
__device__ __forceinline__ V chosen(const V (&of)[PARTS], int part)
{
    V value = of[0];
#pragma unroll
    for (int p = 1; p < PARTS; ++p)
        value = part == p ? of[p] : value;
    return value;
}

// x_p (rows, width_p) Word in, null where width_p is 0; y (rows, columns) Word out.  `together` is
// the sum of the widths, n = rows * together.
// numpy: y[:, first:first + together] = np.concatenate([x_0, ..., x_7], axis=1)
template <typename Word>
__global__ void __launch_bounds__(THREADS)
concatenate_forward(EIGHT_OF(const Word* __restrict__, x), Word* __restrict__ y, long long n,
                    long long columns, long long first, long long together,
                    EIGHT_OF(long long, width))
{
    const Word* const x[] = {EIGHT(x)};
    const long long width[] = {EIGHT(width)};
    for (long long i = first_element(); i < n; i += element_stride()) {
        long long row = i;
        long long column = cut_off(row, together);
        const long long at = row * columns + first + column;
        const int part = part_of(width, column);
        y[at] = chosen(x, part)[row * chosen(width, part) + column];
    }
}

// gy (rows, columns) Word in; gx_p (rows, width_p) Word out, or null where it is not wanted.
// numpy: gx_p = gy[:, first + width_0 + ... + width_(p-1):][:, :width_p]
template <typename Word>
__global__ void __launch_bounds__(THREADS)
concatenate_backward(const Word* __restrict__ gy, EIGHT_OF(Word* __restrict__, gx), long long n,
                     long long columns, long long first, long long together,
                     EIGHT_OF(long long, width))
{
    Word* const gx[] = {EIGHT(gx)};
    const long long width[] = {EIGHT(width)};
    for (long long i = first_element(); i < n; i += element_stride()) {
        long long row = i;
        long long column = cut_off(row, together);
        const long long at = row * columns + first + column;
        const int part = part_of(width, column);
        Word* const to = chosen(gx, part);
        if (to)
            to[row * chosen(width, part) + column] = gy[at];
    }
}
