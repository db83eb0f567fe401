// Philox4x64-10: random numbers from a counter, the same on every device.
//
// A key and a counter go in, four random words come out; there is no state.  It is the generator
// of tinygraph/engine/random.py and of numpy.random.Philox, word for word:
//
//     key      (seed, stream)
//     counter  (block, 0, step, 0): words 4 * block ... 4 * block + 3 of the stream
//
// so that word i of a stream is the same number, whichever thread computes it.
//
// Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.

#pragma once

#include "prelude.cuh"

struct FourWords {
    unsigned long long word[4];
};

// One of the ten rounds: two products of 128 bits, whose halves change places.
__device__ __forceinline__ FourWords philox_round(const FourWords& c, unsigned long long key0,
                                                  unsigned long long key1)
{
    constexpr unsigned long long multiplier0 = 0xD2E7470EE14C6C93ull;
    constexpr unsigned long long multiplier1 = 0xCA5A826395121157ull;
    FourWords next;
    next.word[0] = __umul64hi(multiplier1, c.word[2]) ^ c.word[1] ^ key0;
    next.word[1] = multiplier1 * c.word[2];
    next.word[2] = __umul64hi(multiplier0, c.word[0]) ^ c.word[3] ^ key1;
    next.word[3] = multiplier0 * c.word[0];
    return next;
}

__device__ __forceinline__ FourWords philox(unsigned long long seed, unsigned long long stream,
                                            unsigned long long step, unsigned long long block)
{
    constexpr unsigned long long golden_ratio = 0x9E3779B97F4A7C15ull;  // what the key grows by
    constexpr unsigned long long root_of_3 = 0xBB67AE8584CAA73Bull;
    FourWords words = {{block, 0, step, 0}};
#pragma unroll
    for (int round = 0; round < 10; ++round) {
        words = philox_round(words, seed, stream);
        seed += golden_ratio;
        stream += root_of_3;
    }
    return words;
}

// A word as a number in [0, 1): its high 24 bits, or 53 for a double, which are exact in either.
__device__ __forceinline__ void to_uniform(unsigned long long word, float& number)
{
    number = static_cast<float>(word >> 40) * (1.0f / 16777216.0f);
}

__device__ __forceinline__ void to_uniform(unsigned long long word, double& number)
{
    number = static_cast<double>(word >> 11) * (1.0 / 9007199254740992.0);
}
