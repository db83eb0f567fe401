// Negative log-likelihood of labels, forward and backward.
//
// operations of nll_loss_each: 0
// operations of nll_loss_sum: rows + (sums if divides else 0)
// operations of nll_loss_backward: rows  # none for labels that do not count
//
//     x (N, C, S): log-probabilities of C classes, S further positions (pixels; 1 if none)
//     rows = N * S, one for each label; row n * S + s has its classes S elements apart
//
// A thread owns rows i, i + stride, ... (a grid-stride loop).  Grid (min(ceil(rows / 256), 1024)),
// block (256).
// Memory: neighbouring threads read neighbouring labels, and of each row the one element that its
// label names; these lie C elements apart where S = 1, and side by side where pixels of one image
// have one label.  x is never read as a whole.
// Deterministic: the sum is taken in a fixed order (label_loss.cuh), which depends on rows alone.

#include "label_loss.cuh"

// Which elements the labels name, and which labels count.
struct Labels {
    const long long* labels;
    long long classes, positions, ignore_index;
    int ignores;  // 1: labels equal to ignore_index do not count

    __device__ __forceinline__ bool counts(long long row) const
    {
        return !ignores || labels[row] != ignore_index;
    }

    __device__ __forceinline__ bool known(long long row) const
    {
        return labels[row] >= 0 && labels[row] < classes;
    }

    __device__ __forceinline__ long long element(long long row) const
    {
        const long long sample = row / positions;
        return (sample * classes + labels[row]) * positions + (row - sample * positions);
    }

    template <typename T>
    __device__ __forceinline__ T loss(const T* x, long long row) const
    {
        if (!counts(row))
            return T(0);
        return known(row) ? -x[element(row)] : T(NAN);
    }
};

// x (N, C, S) T in, labels (rows) int64 in, loss (rows) T out.
// Where `ignores` is 1, labels equal to ignore_index have loss 0.  A label out of range gives NaN.
// numpy: loss = -x[n, labels, s]
template <typename T>
__global__ void __launch_bounds__(THREADS, 2)
nll_loss_each(const T* __restrict__ x, const long long* __restrict__ labels, T* __restrict__ loss,
              long long rows, long long classes, long long positions, int ignores,
              long long ignore_index)
{
    const Labels of = {labels, classes, positions, ignore_index, ignores};
    for (long long row = first_element(); row < rows; row += element_stride())
        loss[row] = of.loss(x, row);
}

// The same, summed up: sums (gridDim.x) T out, counts (gridDim.x) int64 out.
// numpy: counts = (labels != ignore_index).sum(); sums = loss.sum() / (counts if divides else 1)
template <typename T>
__global__ void __launch_bounds__(THREADS, 2)
nll_loss_sum(const T* __restrict__ x, const long long* __restrict__ labels, T* __restrict__ sums,
             long long* __restrict__ counts, long long rows, long long classes,
             long long positions, int ignores, long long ignore_index, int divides)
{
    const Labels of = {labels, classes, positions, ignore_index, ignores};
    T sum = 0;
    long long count = 0;
    for (long long row = first_element(); row < rows; row += element_stride()) {
        sum += of.loss(x, row);
        count += of.counts(row);
    }
    leave_sum<THREADS>(sum, count, sums, counts, divides);
}

// gloss (rows) T in where `each` is 1, (1) where it is 0: of a sum or a mean.  count (1) int64 in:
// what the mean was divided by, null for a sum or none.  gx (N, C, S) T out, zeros before.
// numpy: gx[n, labels, s] = -gloss / count, but for labels that are ignored or out of range
template <typename T>
__global__ void __launch_bounds__(THREADS, 2)
nll_loss_backward(const T* __restrict__ gloss, const long long* __restrict__ count,
                  const long long* __restrict__ labels, T* __restrict__ gx, long long rows,
                  long long classes, long long positions, int ignores, long long ignore_index,
                  int each)
{
    const Labels of = {labels, classes, positions, ignore_index, ignores};
    const T divisor = count ? static_cast<T>(*count) : T(1);
    for (long long row = first_element(); row < rows; row += element_stride()) {
        if (of.counts(row) && of.known(row))
            gx[of.element(row)] = -gloss[each ? row : 0] / divisor;
    }
}
