// Indexing with integer arrays, forward and backward.  (Without them: strided.cu.)
//
// instances: getitem_forward<Word> for Word in unsigned char, unsigned short, unsigned int,
//            unsigned long long
// operations of getitem_forward: 0
// operations of getitem_backward: n * picks // distinct
//
// Forward moves bits, not numbers: one instance for each size of an element serves every dtype.
//
// The index arrays, broadcast together, name `picks` places: pick j adds offset[j] to a position in
// x.  The other axes are sliced, and lie some steps apart in x.  So in y (before, picks, behind),
//
//     y[g] = x[first + strided_position(axes, g) + offset[j]]        j = g / behind % picks
//
// where `axes` holds the picks too, as an axis of step 0.  A launch covers n elements from `begin`
// on: more than MOST_AXES merged axes take several launches, which differ in `first` and `begin`.
//
// Which thread owns what, grid and block: the grid-stride loop of prelude.cuh, over the output.
// Backward, a thread owns one of the distinct offsets at a time, whose picks it adds up in their
// order: no atomics.
// Memory: neighbouring threads touch neighbours of y, and where the innermost axis is taken whole,
// of x.  The tables of picks are read again and again, from cache.

#include "long_sum.cuh"
#include "strided.cuh"

// x Word in, offset (picks) int64 in, y Word out, of which this launch writes y[begin:begin + n].
// numpy: y.flat[g] = x.flat[first + position(g) + offset[g // behind % picks]]
template <typename Word>
__global__ void __launch_bounds__(THREADS, 2)
getitem_forward(const Word* __restrict__ x, const long long* __restrict__ offset,
                Word* __restrict__ y, long long n, long long begin, long long first,
                long long picks, long long behind, STRIDED_PARAMETERS)
{
    const StridedAxes axes = STRIDED_AXES;
    for (long long i = first_element(); i < n; i += element_stride()) {
        const long long g = begin + i;
        long long row = g;
        cut_off(row, behind);
        y[g] = x[first + strided_position(axes, g) + offset[cut_off(row, picks)]];
    }
}

// gy (before, picks, behind) T in; gx T, zeros at first, out.  For each of the distinct offsets u:
// offset (distinct) int64 in, and where its picks stand in `order` (picks) int64 in, from start[u]
// to start[u + 1].  n elements of (before, distinct, behind), from `begin` on; `axes` holds the
// distinct offsets as an axis of step 0.
// numpy: np.add.at(gx.flat, positions, gy)
template <typename T>
__global__ void __launch_bounds__(THREADS, 2)
getitem_backward(const T* __restrict__ gy, const long long* __restrict__ offset,
                 const long long* __restrict__ start, const long long* __restrict__ order,
                 T* __restrict__ gx, long long n, long long begin, long long first,
                 long long picks, long long distinct, long long behind, STRIDED_PARAMETERS)
{
    const StridedAxes axes = STRIDED_AXES;
    for (long long i = first_element(); i < n; i += element_stride()) {
        const long long g = begin + i;
        long long before = g;
        const long long column = cut_off(before, behind);
        const long long u = cut_off(before, distinct);
        const T* const terms = gy + before * picks * behind + column;
        LongSum<T> sum;
        for (long long k = start[u]; k < start[u + 1]; ++k)
            sum.add(terms[order[k] * behind]);
        gx[first + strided_position(axes, g) + offset[u]] = sum.value();
    }
}
