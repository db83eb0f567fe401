// Softmax cross-entropy in one op, forward and backward.
//
// instances (BLOCK_THREADS=512, ROW_THREADS=1): labels_forward<T>,
//            probabilities_forward<T> for T in float, double
// instances (BLOCK_THREADS=512, ROW_THREADS=8): labels_forward<T>,
//            probabilities_forward<T> for T in float, double
// instances (ROW_THREADS=1): labels_forward<T>, labels_backward<T>, probabilities_forward<T>,
//            probabilities_backward<T> for T in float, double
// instances (ROW_THREADS=8): labels_forward<T>, labels_backward<T>, probabilities_forward<T>,
//            probabilities_backward<T> for T in float, double
// instances (ROW_THREADS=32): labels_forward<T>, labels_backward<T>, probabilities_forward<T>,
//            probabilities_backward<T> for T in float, double
// instances (ROW_THREADS=256): labels_forward<T>, labels_backward<T>, probabilities_forward<T>,
//            probabilities_backward<T> for T in float, double
// operations of labels_forward: (6 if even else 3) * x + (7 if even else 4) * rows + (sums if divides else 0)  # less if ignored
// operations of labels_backward: 6 * x + 2 * rows  # less if ignored
// operations of probabilities_forward: 8 * x + 2 * rows + (sums if divides else 0)
// operations of probabilities_backward: (1 + (4 if gx else 0) + (2 if gt else 0)) * x + 3 * rows
//
//     x (N, C, S): logits of C classes, S further positions (pixels; 1 where there are none)
//     rows = N * S, one for each label; the classes of row n * S + s lie S elements apart
//     p = softmax of a row = exp(x - maximum) / total, total = sum of exp(x - maximum)
//
// A group of ROW_THREADS threads owns a row, and a thread of it every ROW_THREADS-th class:
//
//     256     the block          many classes, side by side in memory (S = 1)
//     32, 8   a warp, a quarter  fewer classes, side by side: the reductions need no barrier
//     1       one thread         S > 1: the threads of a warp own neighbouring rows
//
// so that in all of them neighbouring threads read neighbouring elements.  A block of BLOCK_THREADS
// threads owns that many / ROW_THREADS rows at a time, then those gridDim.x times as many further on.
//
// Forward, with the sum or the mean over all rows, is one launch of one block of 512 threads where x
// is small (the host decides: ops/losses/softmax_cross_entropy.py).  What counts there is how long the few
// loads take one after the other, so that a thread has a row of up to 16 classes to itself.  Else
// blocks of 256 leave a partial sum each, and sum_of_partials (losses.cu) adds these up: a second
// launch, whose time is small beside that of the first.  Backward is one launch.
//
// Softmax itself is never stored: forward keeps the maximum and the total of each row, and backward
// computes p from them.  That saves a write and a read as large as x, for one exp more.  The
// maximum is subtracted before exp, which changes nothing in p and keeps exp from overflowing.
//
// Deterministic: every sum is taken in a fixed order (reduce.cuh).  No atomics: a block that is the
// last one to finish would need a counter in memory that is zero before each launch.

#include "label_loss.cuh"
#include "long_sum.cuh"

#ifndef BLOCK_THREADS
#define BLOCK_THREADS 256
#endif
#ifndef ROW_THREADS
#define ROW_THREADS 32
#endif

constexpr int ROWS = BLOCK_THREADS / ROW_THREADS;  // of a block at a time

#define BOUNDS __launch_bounds__(BLOCK_THREADS, 512 / BLOCK_THREADS)  // 128 registers a thread

// Where a thread stands: in the row of its group at one turn of the block.  A group beyond the last
// row has no class to do, and goes along with its warp.
struct Row {
    const long long row;  // n * S + s
    const bool inside;
    const int lane = threadIdx.x % ROW_THREADS;
    const int classes;
    const long long first;  // of the row's class 0 in x

    __device__ __forceinline__ Row(long long turn, long long rows, int classes, int positions)
        : row(turn * ROWS + threadIdx.x / ROW_THREADS), inside(row < rows),
          classes(inside ? classes : 0),
          first(row / positions * classes * positions + row % positions)
    {
    }
};

// The maximum and the total of a row; every thread of the group returns both.  x is its class 0.
template <typename T>
__device__ __forceinline__ void normalizer(const T* x, const Row& at, int positions, T* scratch,
                                           T& maximum, T& total)
{
    maximum = -INFINITY;
    for (long long c = at.lane; c < at.classes; c += ROW_THREADS)
        maximum = Max::combine(maximum, x[c * positions]);
    maximum = reduce_group<Max, ROW_THREADS>(maximum, scratch);
    LongSum<T> sum;
    for (long long c = at.lane; c < at.classes; c += ROW_THREADS)
        sum.add(exp(x[c * positions] - maximum));  // a NaN comes in here, if not before
    total = reduce_group<Sum, ROW_THREADS>(sum.value(), scratch);
}

// ---- labels that name a class ---------------------------------------------------------------

// x (N, C, S) T in, labels (rows) int64 in; maxima, totals (rows) T out.  Either losses (rows) T out
// and null for sums and counts, or null for losses, sums (gridDim.x) T out, counts (gridDim.x) int64
// out: of the rows of each block, the sum of losses and how many labels count.
// Where `ignores` is 1, labels equal to ignore_index have loss 0.  A label out of range gives NaN.
// `even` is the share of each class in a smoothed label, and `onto` what its own class has beside that:
// 0 and 1 without smoothing.
// numpy: logs = -log(softmax(x)); losses = onto * logs[row, labels] + even * logs.sum(classes)
//        counts = (labels != ignore_index).sum(); sums = losses.sum() / (counts if divides else 1)
template <typename T>
__global__ void BOUNDS
labels_forward(const T* __restrict__ x, const long long* __restrict__ labels,
               T* __restrict__ maxima, T* __restrict__ totals, T* __restrict__ losses,
               T* __restrict__ sums, long long* __restrict__ counts, long long rows, int classes,
               int positions, int divides, int ignores, long long ignore_index, T onto, T even)
{
    __shared__ T scratch[BLOCK_THREADS / 32];
    T sum = 0;
    long long count = 0;
    for (long long turn = blockIdx.x; turn * ROWS < rows; turn += gridDim.x) {
        const Row at(turn, rows, classes, positions);
        T maximum, total;
        normalizer(x + at.first, at, positions, scratch, maximum, total);
        const T log_total = log(total);
        T logs = 0;  // of all classes
        if (even != 0) {
            LongSum<T> own;
            for (long long c = at.lane; c < at.classes; c += ROW_THREADS)
                own.add(log_total - (x[at.first + c * positions] - maximum));
            logs = reduce_group<Sum, ROW_THREADS>(own.value(), scratch);
        }
        if (at.inside && at.lane == 0) {
            const long long label = labels[at.row];
            T loss = 0;
            if (!ignores || label != ignore_index) {
                const bool known = label >= 0 && label < classes;
                loss = known ? log_total - (x[at.first + label * positions] - maximum) : T(NAN);
                if (even != 0)
                    loss = onto * loss + even * logs;
                ++count;
            }
            maxima[at.row] = maximum;
            totals[at.row] = total;
            if (losses)
                losses[at.row] = loss;
            sum += loss;
        }
    }
    if (sums)
        leave_sum<BLOCK_THREADS>(sum, count, sums, counts, divides);
}

// gloss (rows) T in where `each` is 1, (1) where it is 0: of a sum or a mean.  count (1) int64 in:
// what the mean was divided by, null for a sum or none.  The others as in labels_forward.
// gx (N, C, S) T out.
// numpy: gx = gloss / count * (softmax(x) - onto * onehot(labels) - even), 0 in rows that are ignored
template <typename T>
__global__ void BOUNDS
labels_backward(const T* __restrict__ gloss, const long long* __restrict__ count,
                const T* __restrict__ x, const long long* __restrict__ labels,
                const T* __restrict__ maxima, const T* __restrict__ totals, T* __restrict__ gx,
                long long rows, int classes, int positions, int each, int ignores,
                long long ignore_index, T onto, T even)
{
    const Row at(blockIdx.x, rows, classes, positions);
    if (!at.inside)
        return;
    const long long label = labels[at.row];
    const bool counts = !ignores || label != ignore_index;
    const T g = gloss[each ? at.row : 0] / (count ? static_cast<T>(*count) : T(1));
    const T maximum = maxima[at.row], inverse = T(1) / totals[at.row];
    for (long long c = at.lane; c < classes; c += ROW_THREADS) {
        const long long i = at.first + c * positions;
        const T p = exp(x[i] - maximum) * inverse;
        gx[i] = counts ? g * (p - even - (c == label ? onto : T(0))) : T(0);
    }
}

// ---- labels that are probabilities ----------------------------------------------------------

// x, t (N, C, S) T in; maxima, totals, weights (rows) T out: weights are the sums of t.  losses, sums
// and counts as in labels_forward; every row counts.
// numpy: losses = -(t * log(softmax(x))).sum(classes); counts = the number of rows
//        sums = losses.sum() / (counts if divides else 1)
template <typename T>
__global__ void BOUNDS
probabilities_forward(const T* __restrict__ x, const T* __restrict__ t, T* __restrict__ maxima,
                      T* __restrict__ totals, T* __restrict__ weights, T* __restrict__ losses,
                      T* __restrict__ sums, long long* __restrict__ counts, long long rows,
                      int classes, int positions, int divides)
{
    __shared__ T scratch[BLOCK_THREADS / 32];
    T sum = 0;
    long long count = 0;
    for (long long turn = blockIdx.x; turn * ROWS < rows; turn += gridDim.x) {
        const Row at(turn, rows, classes, positions);
        T maximum, total;
        normalizer(x + at.first, at, positions, scratch, maximum, total);
        const T log_total = log(total);
        LongSum<T, 2> sums;
        for (long long c = at.lane; c < at.classes; c += ROW_THREADS) {
            const long long i = at.first + c * positions;
            sums.add(t[i] * (log_total - (x[i] - maximum)), t[i]);
        }
        const T loss = reduce_group<Sum, ROW_THREADS>(sums.value(0), scratch);
        const T weight = reduce_group<Sum, ROW_THREADS>(sums.value(1), scratch);
        if (at.inside && at.lane == 0) {
            maxima[at.row] = maximum;
            totals[at.row] = total;
            weights[at.row] = weight;
            if (losses)
                losses[at.row] = loss;
            sum += loss;
            ++count;
        }
    }
    if (sums)
        leave_sum<BLOCK_THREADS>(sum, count, sums, counts, divides);
}

// Arguments as in labels_backward and probabilities_forward; gx, gt (N, C, S) T out, or null.
// numpy: gx = gloss / count * (softmax(x) * t.sum(classes) - t); gt = -gloss / count * log(softmax)
template <typename T>
__global__ void BOUNDS
probabilities_backward(const T* __restrict__ gloss, const long long* __restrict__ count,
                       const T* __restrict__ x, const T* __restrict__ t,
                       const T* __restrict__ maxima, const T* __restrict__ totals,
                       const T* __restrict__ weights, T* __restrict__ gx, T* __restrict__ gt,
                       long long rows, int classes, int positions, int each)
{
    const Row at(blockIdx.x, rows, classes, positions);
    if (!at.inside)
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
