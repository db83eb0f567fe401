// Softmax cross-entropy in one op, forward and backward.
//
// instances (ROW_THREADS=1): labels_forward<T>, labels_backward<T>, probabilities_forward<T>,
//            probabilities_backward<T>, sum_of_rows<T>, sum_of_partials<T> for T in float, double
// instances (ROW_THREADS=32): labels_forward<T>, labels_backward<T>, probabilities_forward<T>,
//            probabilities_backward<T> for T in float, double
// instances (ROW_THREADS=256): labels_forward<T>, labels_backward<T>, probabilities_forward<T>,
//            probabilities_backward<T> for T in float, double
// operations of labels_forward: 3 * x + 3 * rows  # less for labels that do not count
// operations of labels_backward: 5 * x + 2 * rows  # less for labels that do not count
// operations of probabilities_forward: 8 * x + rows
// operations of probabilities_backward: (1 + (4 if gx else 0) + (2 if gt else 0)) * x + 3 * rows
// operations of sum_of_rows: rows + (sums if divides else 0)
// operations of sum_of_partials: n + (1 if divides else 0)
//
//     x (N, C, S): logits of C classes, S further positions (pixels; 1 where there are none)
//     rows = N * S, one for each label; the classes of row n * S + s lie S elements apart
//     p = softmax of a row = exp(x - maximum) / total, total = sum of exp(x - maximum)
//
// A group of ROW_THREADS threads owns a row, and a thread of it every ROW_THREADS-th class:
//
//     256  the block        many classes, side by side in memory (S = 1)
//      32  one warp         fewer classes, side by side: the reductions need no barrier
//       1  one thread       S > 1: the threads of a warp own neighbouring rows
//
// so that in all three neighbouring threads read neighbouring elements.  A block holds
// 256 / ROW_THREADS rows.  Grid (ceil(rows / that)), block (256).
//
// Softmax itself is never stored: forward keeps the maximum and the total of each row, and backward
// computes p from them.  That saves a write and a read as large as x, for one exp more.  The
// maximum is subtracted before exp, which changes nothing in p and keeps exp from overflowing.
//
// Deterministic: every sum is taken in a fixed order (reduce.cuh).

#include "reduce.cuh"

#ifndef ROW_THREADS
#define ROW_THREADS 32
#endif

// Where a thread stands.
struct Row {
    const long long row = group_number<ROW_THREADS>();  // n * S + s
    const int lane = threadIdx.x % ROW_THREADS;
    const long long first;  // of the row's class 0 in x

    __device__ __forceinline__ Row(int classes, int positions)
        : first(row / positions * classes * positions + row % positions)
    {
    }
};

// The maximum and the total of a row; every thread of the group returns both.  x is its class 0.
template <typename T>
__device__ __forceinline__ void normalizer(const T* x, int classes, int positions, int lane,
                                           T* scratch, T& maximum, T& total)
{
    maximum = -INFINITY;
    for (long long c = lane; c < classes; c += ROW_THREADS)
        maximum = Max::combine(maximum, x[c * positions]);
    maximum = reduce_group<Max, ROW_THREADS>(maximum, scratch);
    total = 0;
    for (long long c = lane; c < classes; c += ROW_THREADS)
        total += exp(x[c * positions] - maximum);  // a NaN comes in here, if not before
    total = reduce_group<Sum, ROW_THREADS>(total, scratch);
}

// ---- labels that name a class ---------------------------------------------------------------

// x (N, C, S) T in, labels (rows) int64 in; loss, maxima, totals (rows) T out.
// Where `ignores` is 1, labels equal to ignore_index have loss 0.  A label out of range gives NaN.
// numpy: loss = -log(softmax(x))[row, labels]
template <typename T>
__global__ void __launch_bounds__(THREADS, 2)
labels_forward(const T* __restrict__ x, const long long* __restrict__ labels, T* __restrict__ loss,
               T* __restrict__ maxima, T* __restrict__ totals, long long rows, int classes,
               int positions, int ignores, long long ignore_index)
{
    __shared__ T scratch[WARPS];
    const Row at(classes, positions);
    if (at.row >= rows)
        return;  // the whole group together, so nobody waits for it
    T maximum, total;
    normalizer(x + at.first, classes, positions, at.lane, scratch, maximum, total);
    if (at.lane == 0) {
        const long long label = labels[at.row];
        T out = 0;
        if (!ignores || label != ignore_index) {
            const bool known = label >= 0 && label < classes;
            out = known ? log(total) - (x[at.first + label * positions] - maximum) : T(NAN);
        }
        loss[at.row] = out;
        maxima[at.row] = maximum;
        totals[at.row] = total;
    }
}

// gloss (rows) T in where `each` is 1, (1) where it is 0: of a sum or a mean.  count (1) int64 in:
// what the mean was divided by, null for a sum or none.  The others as in labels_forward.
// gx (N, C, S) T out.
// numpy: gx = gloss / count * (softmax(x) - onehot(labels)), 0 in the rows that are ignored
template <typename T>
__global__ void __launch_bounds__(THREADS, 2)
labels_backward(const T* __restrict__ gloss, const long long* __restrict__ count,
                const T* __restrict__ x, const long long* __restrict__ labels,
                const T* __restrict__ maxima, const T* __restrict__ totals, T* __restrict__ gx,
                long long rows, int classes, int positions, int each, int ignores,
                long long ignore_index)
{
    const Row at(classes, positions);
    if (at.row >= rows)
        return;
    const long long label = labels[at.row];
    const bool counts = !ignores || label != ignore_index;
    const T g = gloss[each ? at.row : 0] / (count ? static_cast<T>(*count) : T(1));
    const T maximum = maxima[at.row], inverse = T(1) / totals[at.row];
    for (long long c = at.lane; c < classes; c += ROW_THREADS) {
        const long long i = at.first + c * positions;
        const T p = exp(x[i] - maximum) * inverse;
        gx[i] = counts ? g * (p - (c == label ? T(1) : T(0))) : T(0);
    }
}

// ---- labels that are probabilities ----------------------------------------------------------

// x, t (N, C, S) T in; loss, maxima, totals, weights (rows) T out: weights are the sums of t.
// numpy: loss = -(t * log(softmax(x))).sum(classes)
template <typename T>
__global__ void __launch_bounds__(THREADS, 2)
probabilities_forward(const T* __restrict__ x, const T* __restrict__ t, T* __restrict__ loss,
                      T* __restrict__ maxima, T* __restrict__ totals, T* __restrict__ weights,
                      long long rows, int classes, int positions)
{
    __shared__ T scratch[WARPS];
    const Row at(classes, positions);
    if (at.row >= rows)
        return;
    T maximum, total;
    normalizer(x + at.first, classes, positions, at.lane, scratch, maximum, total);
    const T log_total = log(total);
    T out = 0, weight = 0;
    for (long long c = at.lane; c < classes; c += ROW_THREADS) {
        const long long i = at.first + c * positions;
        out += t[i] * (log_total - (x[i] - maximum));
        weight += t[i];
    }
    out = reduce_group<Sum, ROW_THREADS>(out, scratch);
    weight = reduce_group<Sum, ROW_THREADS>(weight, scratch);
    if (at.lane == 0) {
        loss[at.row] = out;
        maxima[at.row] = maximum;
        totals[at.row] = total;
        weights[at.row] = weight;
    }
}

// Arguments as in labels_backward and probabilities_forward; gx, gt (N, C, S) T out, or null.
// numpy: gx = gloss / count * (softmax(x) * t.sum(classes) - t); gt = -gloss / count * log(softmax)
template <typename T>
__global__ void __launch_bounds__(THREADS, 2)
probabilities_backward(const T* __restrict__ gloss, const long long* __restrict__ count,
                       const T* __restrict__ x, const T* __restrict__ t,
                       const T* __restrict__ maxima, const T* __restrict__ totals,
                       const T* __restrict__ weights, T* __restrict__ gx, T* __restrict__ gt,
                       long long rows, int classes, int positions, int each)
{
    const Row at(classes, positions);
    if (at.row >= rows)
        return;
    const T g = gloss[each ? at.row : 0] / (count ? static_cast<T>(*count) : T(1));
    const T maximum = maxima[at.row], total = totals[at.row];
    const T log_total = log(total), weight = weights[at.row] / total;
    for (long long c = at.lane; c < classes; c += ROW_THREADS) {
        const long long i = at.first + c * positions;
        const T translated = x[i] - maximum;
        if (gx)
            gx[i] = g * (exp(translated) * weight - t[i]);
        if (gt)
            gt[i] = g * (log_total - translated);
    }
}

// ---- the sum or the mean over all rows ------------------------------------------------------

// One launch where a single block has enough threads; else each block leaves a partial sum, and
// sum_of_partials adds these up.  Whichever comes last divides: how many labels count is known on
// the GPU alone, and nothing waits for it.

template <typename T>
__device__ __forceinline__ void leave_sum(T sum, long long count, T* sums, long long* counts,
                                          int divides)
{
    __shared__ T scratch[WARPS];
    __shared__ long long count_scratch[WARPS];
    sum = reduce_group<Sum, THREADS>(sum, scratch);
    count = reduce_group<Sum, THREADS>(count, count_scratch);
    if (threadIdx.x == 0) {
        sums[blockIdx.x] = divides ? sum / static_cast<T>(count) : sum;  // 0 / 0 is NaN
        counts[blockIdx.x] = count;
    }
}

// loss (rows) T in; labels (rows) int64 in, or null: every row counts; sums (gridDim.x) T out,
// counts (gridDim.x) int64 out.  Grid (min(ceil(rows / 256), 1024)), block (256).
// numpy: counts = (labels != ignore_index).sum(); sums = loss.sum() / (counts if divides else 1)
template <typename T>
__global__ void __launch_bounds__(THREADS, 2)
sum_of_rows(const T* __restrict__ loss, const long long* __restrict__ labels, T* __restrict__ sums,
            long long* __restrict__ counts, long long rows, long long ignore_index, int divides)
{
    T sum = 0;
    long long count = 0;
    for (long long i = first_element(); i < rows; i += element_stride()) {
        sum += loss[i];
        count += labels ? labels[i] != ignore_index : 1;
    }
    leave_sum(sum, count, sums, counts, divides);
}

// partial_sums (n) T in, partial_counts (n) int64 in, sum (1) T out, count (1) int64 out.
// One block.
// numpy: count = partial_counts.sum(); sum = partial_sums.sum() / (count if divides else 1)
template <typename T>
__global__ void __launch_bounds__(THREADS, 2)
sum_of_partials(const T* __restrict__ partial_sums, const long long* __restrict__ partial_counts,
                T* __restrict__ sum, long long* __restrict__ count, long long n, int divides)
{
    T partial_sum = 0;
    long long partial_count = 0;
    for (long long i = threadIdx.x; i < n; i += THREADS) {
        partial_sum += partial_sums[i];
        partial_count += partial_counts[i];
    }
    leave_sum(partial_sum, partial_count, sum, count, divides);
}
