// The sum of many terms in one thread, with rounding that grows with the log of their number: no
// number takes part in more than 64 additions in a row, up to 2^24 terms.
//
//     sums[0]    of the last 64 terms or fewer
//     sums[1]    of the last 64 of such sums or fewer, and so on
//
// A NaN or an infinity among the terms is one of the sum, as in any order: nothing is subtracted.
// Of several sums that are taken together one counts for all.
//
// Source: Higham, "The accuracy of floating point summation", SIAM J. Sci. Comput. 14, 1993.

#pragma once

#include "prelude.cuh"

template <typename T, int TOGETHER = 1>
struct LongSum {
    T sums[4][TOGETHER] = {};
    unsigned count = 0;  // of terms, modulo 2^32

    template <typename... Terms>
    __device__ __forceinline__ void add(Terms... terms)
    {
        static_assert(sizeof...(terms) == TOGETHER, "one term for each sum");
        const T given[] = {terms...};
#pragma unroll
        for (int i = 0; i < TOGETHER; ++i)
            sums[0][i] += given[i];
        ++count;
#pragma unroll
        for (int level = 0; level < 3; ++level) {
            if (count & ((64u << 6 * level) - 1))
                return;
#pragma unroll
            for (int i = 0; i < TOGETHER; ++i) {
                sums[level + 1][i] += sums[level][i];
                sums[level][i] = 0;
            }
        }
    }

    __device__ __forceinline__ T value(int i = 0) const
    {
        return sums[3][i] + (sums[2][i] + (sums[1][i] + sums[0][i]));
    }
};
