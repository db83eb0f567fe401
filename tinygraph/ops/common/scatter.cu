// Sums by row: each term has a key, the row that it belongs to, and a row is the sum of its terms
// in their order.
//
// operations of digit_counts: 0
// operations of chunk_totals: 0
// operations of exclusive_scan: 0
// operations of place_by_digit: 0
// operations of row_starts: 0
// operations of sum_rows: terms  # less where a key is no row
//
//     n        keys, one for each term       rows    of the result; a key beyond them is left out
//     RUN      neighbouring keys that one thread owns          runs = ceil(n / RUN)
//
// Atomic additions would give the terms of a row no fixed order.  So the keys are sorted, by a sort
// that leaves equal keys in their order, and then each row walks over its own terms.
//
// Radix sort, from the lowest digit to the highest; one pass for each digit of four bits:
//
//     digit_counts     counts (16, runs): how often each run of keys has each digit
//     exclusive_scan   the same array, summed up from its begin: for each digit and run, how many
//                      keys come before, those of lower digits and those of earlier runs
//     place_by_digit   each key goes to the next free place of its run and digit
//
// The work is proportional to n times the number of digits of `rows`, plus the result.
//
// Grid (min(ceil(elements / 256), 1024)), block (256), a grid-stride loop, if nothing else is said.
// Memory: a thread reads 32 neighbouring keys, so the threads of a warp are 32 keys apart; what one
// request brings along, the next ones find in the cache.  Places are random access, as sorting is.
// Deterministic: no two threads write one element, and every sum is taken in a fixed order.
//
// A row is walked over by one thread for each of its features: a key that most terms share makes
// long sums, but never more work.

#include "long_sum.cuh"
#include "reduce.cuh"

constexpr int BITS = 4;  // of a digit; this and RUN also stand in ops/common/scatter.py
constexpr int DIGITS = 1 << BITS;
constexpr int RUN = 32;

__device__ __forceinline__ int digit_of(long long key, int shift)
{
    return static_cast<int>(key >> shift) & (DIGITS - 1);
}

// All keys that are no rows as one that comes behind them.
__device__ __forceinline__ long long bounded(long long key, long long rows)
{
    return key >= 0 && key < rows ? key : rows;
}

// keys (n) int64 in, counts (16, runs) int64 out.
// numpy: counts[d, r] = (keys[32 * r:32 * r + 32] >> shift & 15 == d).sum()
__global__ void __launch_bounds__(THREADS)
digit_counts(const long long* __restrict__ keys, long long* __restrict__ counts, long long n,
             long long runs, long long rows, int shift)
{
    __shared__ int count[DIGITS][THREADS];  // a column for each thread: nobody has to wait
    const int me = threadIdx.x;
    for (long long run = first_element(); run < runs; run += element_stride()) {
        for (int d = 0; d < DIGITS; ++d)
            count[d][me] = 0;
        for (long long i = run * RUN; i < min(run * RUN + RUN, n); ++i)
            ++count[digit_of(bounded(keys[i], rows), shift)][me];
        for (int d = 0; d < DIGITS; ++d)
            counts[d * runs + run] = count[d][me];
    }
}

// keys, order (n) int64 in, what the passes before left; order is null at first: as they are.
// places (16, runs) int64 in, how many keys come before.  sorted, sorted_order (n) int64 out.
// numpy: at = np.argsort(keys >> shift & 15, kind="stable")
//        sorted, sorted_order = keys[at], order[at]
__global__ void __launch_bounds__(THREADS)
place_by_digit(const long long* __restrict__ keys, const long long* __restrict__ order,
               const long long* __restrict__ places, long long* __restrict__ sorted,
               long long* __restrict__ sorted_order, long long n, long long runs, long long rows,
               int shift)
{
    __shared__ long long next[DIGITS][THREADS];
    const int me = threadIdx.x;
    for (long long run = first_element(); run < runs; run += element_stride()) {
        for (int d = 0; d < DIGITS; ++d)
            next[d][me] = places[d * runs + run];
        for (long long i = run * RUN; i < min(run * RUN + RUN, n); ++i) {
            const long long key = bounded(keys[i], rows);
            const long long place = next[digit_of(key, shift)][me]++;
            sorted[place] = key;
            sorted_order[place] = order ? order[i] : i;
        }
    }
}

// ---- sums from the begin ----------------------------------------------------------------------

// x (n) int64 in, totals (chunks) int64 out: a block for each chunk of `per_chunk` elements.
// Grid (chunks), block (256).
// numpy: totals = np.add.reduceat(x, range(0, n, per_chunk))
__global__ void __launch_bounds__(THREADS)
chunk_totals(const long long* __restrict__ x, long long* __restrict__ totals, long long n,
             long long per_chunk)
{
    __shared__ long long scratch[WARPS];
    const long long first = blockIdx.x * per_chunk, last = min(first + per_chunk, n);
    long long sum = 0;
    for (long long i = first + threadIdx.x; i < last; i += THREADS)
        sum += x[i];
    sum = reduce_group<Sum, THREADS>(sum, scratch);
    if (threadIdx.x == 0)
        totals[blockIdx.x] = sum;
}

// The sum of the values of the threads before this one; `total` is that of the block.
__device__ __forceinline__ long long sum_before(long long value, long long* scratch,
                                                long long& total)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const long long upto = scan_warp(value);
    __syncthreads();  // whoever still reads scratch comes first
    if (lane == 31)
        scratch[warp] = upto;
    __syncthreads();
    long long before = upto - value;
    total = 0;
#pragma unroll
    for (int w = 0; w < WARPS; ++w) {
        before += w < warp ? scratch[w] : 0;
        total += scratch[w];
    }
    return before;
}

// x (n), totals (chunks) int64 in, y (n) int64 out; a single chunk needs no totals.
// Grid (chunks), block (256): a block adds up the chunks before its own, then its tiles of 256.
// numpy: y = np.cumsum(x) - x
__global__ void __launch_bounds__(THREADS)
exclusive_scan(const long long* __restrict__ x, const long long* __restrict__ totals,
               long long* __restrict__ y, long long n, long long per_chunk)
{
    __shared__ long long scratch[WARPS];
    const long long first = blockIdx.x * per_chunk, last = min(first + per_chunk, n);
    long long before = 0;
    for (int chunk = threadIdx.x; chunk < blockIdx.x; chunk += THREADS)
        before += totals[chunk];
    before = reduce_group<Sum, THREADS>(before, scratch);
    for (long long tile = first; tile < last; tile += THREADS) {
        const long long i = tile + threadIdx.x;
        long long total;
        const long long own = sum_before(i < last ? x[i] : 0, scratch, total);
        if (i < last)
            y[i] = before + own;
        before += total;
    }
}

// ---- sums of rows -----------------------------------------------------------------------------

// keys (n) int64 in, sorted; starts (rows + 1) int64 out: where each row begins, and the end.
// numpy: starts = np.searchsorted(keys, np.arange(rows + 1))
__global__ void __launch_bounds__(THREADS)
row_starts(const long long* __restrict__ keys, long long* __restrict__ starts, long long n,
           long long rows)
{
    for (long long row = first_element(); row <= rows; row += element_stride()) {
        long long low = 0, high = n;  // the first key that is not below the row is in low ... high
        while (low < high) {
            const long long middle = low + (high - low) / 2;
            if (keys[middle] < row)
                low = middle + 1;
            else
                high = middle;
        }
        starts[row] = low;
    }
}

// terms (number of terms, features) T in, order (n) int64 in: the terms by their rows, starts
// (rows + 1) int64 in; sums (rows, features), n elements, T out.
// numpy: sums = np.zeros((rows, features)); np.add.at(sums, keys, terms)
template <typename T>
__global__ void __launch_bounds__(THREADS)
sum_rows(const T* __restrict__ terms, const long long* __restrict__ order,
         const long long* __restrict__ starts, T* __restrict__ sums, long long n,
         long long features)
{
    for (long long i = first_element(); i < n; i += element_stride()) {
        const long long row = i / features, feature = i - row * features;
        LongSum<T> sum;
        for (long long k = starts[row]; k < starts[row + 1]; ++k)
            sum.add(terms[order[k] * features + feature]);
        sums[i] = sum.value();
    }
}
