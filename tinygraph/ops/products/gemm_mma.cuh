// The GEMM of step 3 on tensor cores: float32 in and out, products of tf32 or bf16 numbers.
//
//   GEMM_MMA = 19   tf32: 10 bits of mantissa, rounded to nearest, halves away from zero; numbers
//                   below 2^-126 are cut
//   GEMM_MMA = 16   bf16:  7 bits of mantissa, rounded to nearest even
//
// Sums are float32.  A block computes 128x128 elements and takes 16 of the summed axis in a step; a
// warp computes 64x32 of them, as 4x4 products of 16x8.  Two panels for each operand, as in step 3.
//
// A number is rounded once, on its way from a register to the panel; every warp that needs it finds it
// rounded, 2 of them a number of B and 4 a number of A.  That is why panels are not filled by cp.async,
// which would bring numbers as they are.
//
// Panels are stored panel[x][word]: a word is one tf32, or two bf16, the first in the lower half.  Rows
// are 4 words longer than what they hold.  ldmatrix moves 8 rows of 16 bytes: rows begin 5 times (3
// times) 16 bytes apart, so the eight lie in different banks.  It was made for 16-bit elements, but hands
// each lane 4 bytes of a row, which is one word: lane 4g + t gets word t of row g, and that is how
// mma.m16n8k8 wants tf32 and mma.m16n8k16 wants pairs of bf16.
//
// Of what a warp issues for 16 numbers of k, 32 of 101 to 106 instructions are products for tf32, and
// 16 of 55 to 60 for bf16, which do twice as much: 30 % and 27 % (matmul, NVRTC 13.5, sm_90).  All but
// about 14 of the others fetch, round, store and load again what is multiplied.
//
// Deterministic on one GPU: no atomics, the order of steps is fixed.  For sm_80 and later; before,
// gemm_pipelined computes the same product in float32 with the same grid.
//
// Source: PTX ISA, "Warp Level Matrix Instructions"; CUTLASS, "Efficient GEMM in CUDA".
#pragma once

#include "gemm_loader.cuh"
#include "gemm_problem.cuh"
#include "mma.cuh"

// What a word of a panel holds, and 16x8 elements += 16 rows of A times 8 columns of B, 8 words of k.
struct Tf32 {
    static constexpr int PER_WORD = 1;
    static __device__ __forceinline__ unsigned word(const float* some)
    {
        return float_to_tf32_bits(some[0]);
    }
    static __device__ __forceinline__ void multiply(float (&d)[4], const unsigned (&a)[4],
                                                    const unsigned (&b)[2])
    {
        const float c[4] = {d[0], d[1], d[2], d[3]};
        mma_m16n8k8_tf32(d, a, b, c);
    }
};

struct Bf16 {
    static constexpr int PER_WORD = 2;
    static __device__ __forceinline__ unsigned word(const float* some)
    {
        return floats_to_bf16x2(some[0], some[1]);
    }
    static __device__ __forceinline__ void multiply(float (&d)[4], const unsigned (&a)[4],
                                                    const unsigned (&b)[2])
    {
        const float c[4] = {d[0], d[1], d[2], d[3]};
        mma_m16n8k16_bf16(d, a, b, c);
    }
};

static_assert(GEMM_MMA == 19 || GEMM_MMA == 16, "GEMM_MMA: 19 is tf32, 16 is bf16");
#if GEMM_MMA == 19
using Number = Tf32;
#else
using Number = Bf16;
#endif

constexpr int MMA_TILE = 128, WORDS = STEP / Number::PER_WORD, MMA_PITCH = WORDS + 4;

// Words in shared memory, in one access; aligned to their size.
__device__ __forceinline__ void store_words(unsigned* to, const unsigned (&words)[1])
{
    *to = words[0];
}
__device__ __forceinline__ void store_words(unsigned* to, const unsigned (&words)[2])
{
    *reinterpret_cast<uint2*>(to) = make_uint2(words[0], words[1]);
}
__device__ __forceinline__ void store_words(unsigned* to, const unsigned (&words)[4])
{
    *reinterpret_cast<uint4*>(to) = make_uint4(words[0], words[1], words[2], words[3]);
}

// Neighbours along k, rounded: 2, 4 or 8 of them, and `to` the word of the first.
template <int SOME>
__device__ __forceinline__ void store_rounded(unsigned* to, const float (&some)[SOME])
{
    constexpr int ALL = SOME / Number::PER_WORD, AT_ONCE = ALL < 4 ? ALL : 4;
#pragma unroll
    for (int i = 0; i < ALL; i += AT_ONCE) {
        unsigned words[AT_ONCE];
#pragma unroll
        for (int j = 0; j < AT_ONCE; ++j)
            words[j] = Number::word(some + (i + j) * Number::PER_WORD);
        store_words(to + i, words);
    }
}

// A word of a panel, some bytes from its first.  In bytes, because an instruction adds the place of
// the panel to a thread's bytes by itself, but not to its words.
__device__ __forceinline__ unsigned* word_at(unsigned* first, int bytes)
{
    return reinterpret_cast<unsigned*>(reinterpret_cast<char*>(first) + bytes);
}
__device__ __forceinline__ const unsigned* word_at(const unsigned* first, int bytes)
{
    return reinterpret_cast<const unsigned*>(reinterpret_cast<const char*>(first) + bytes);
}

// The loader of a matrix, stored (X, K) if K_CONTIGUOUS, else (K, X).
template <bool K_CONTIGUOUS>
struct MmaMatrix : MatrixLoader<float, K_CONTIGUOUS, MMA_TILE, true> {
    using MatrixLoader<float, K_CONTIGUOUS, MMA_TILE, true>::MatrixLoader;

    template <int ROWS, int PITCH>
    __device__ __forceinline__ void store(unsigned (&panel)[ROWS][PITCH]) const
    {
        const int x = this->x(threadIdx.x), k = this->k(threadIdx.x);
        unsigned* to = word_at(&panel[0][0], x * (PITCH * 4) + k * (4 / Number::PER_WORD));
        if constexpr (K_CONTIGUOUS) {
#pragma unroll
            for (int i = 0; i < this->COUNT; ++i)
                store_rounded(to + i * this->FURTHER / Number::PER_WORD, this->some[i]);
        } else {
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const float two[2] = {this->some[0][j], this->some[1][j]};
                store_rounded(to + j * PITCH, two);
            }
        }
    }
};

// 16 rows and 8 words: of A as mma wants them, [0] row g, word t; [1] row g + 8; [2], [3] word t + 4.  Of
// two operands B, 8 rows each, one after the other: [0] row g, word t; [1] word t + 4; [2], [3] row g + 8.
// This is where the lane's row of 4 words begins, from row x on, in bytes.
template <bool OF_A>
__device__ __forceinline__ int fragment_at(int x, int pitch)
{
    const int lane = threadIdx.x % 32, low = lane / 8 % 2, high = lane / 16;
    return (x + lane % 8 + (OF_A ? low : high) * 8) * (pitch * 4) + (OF_A ? high : low) * 16;
}

// Add the products of one pair of panels to the warp's 64x32 elements.
template <int ROWS_A, int PITCH_A, int ROWS_B, int PITCH_B>
__device__ __forceinline__ void mma_panels(const unsigned (&a_panel)[ROWS_A][PITCH_A],
                                           const unsigned (&b_panel)[ROWS_B][PITCH_B],
                                           float (&sum)[4][4][4])
{
    const int warp = threadIdx.x / 32;
    const unsigned* a_from =
        word_at(&a_panel[0][0], fragment_at<true>(warp / 4 * 64, PITCH_A));
    const unsigned* b_from =
        word_at(&b_panel[0][0], fragment_at<false>(warp % 4 * 32, PITCH_B));
#pragma unroll
    for (int word = 0; word < WORDS; word += 8) {
        unsigned b[2][4];  // of 4 operands
#pragma unroll
        for (int j = 0; j < 2; ++j) ldmatrix_x4(b[j], b_from + j * 16 * PITCH_B + word);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            unsigned a[4];
            ldmatrix_x4(a, a_from + i * 16 * PITCH_A + word);
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const unsigned b_j[2] = {b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]};
                Number::multiply(sum[i][j], a, b_j);
            }
        }
    }
}

// The warp's elements of one tile of C: the sum over `steps`.  All threads of the block call it
// together, for one tile after the other.
template <typename LoaderA, typename LoaderB>
__device__ __forceinline__ void sum_tile(LoaderA &a, LoaderB &b, const SumSteps &steps,
                                         float (&sum)[4][4][4])
{
    struct __align__(16) Panels {
        unsigned a[MMA_TILE][MMA_PITCH], b[MMA_TILE][MMA_PITCH];
    };
    __shared__ Panels panels[2];
    pipeline(panels, a, b, steps,
             [&](const auto &a_panel, const auto &b_panel) { mma_panels(a_panel, b_panel, sum); });
}

// write(r, c, two) for two neighbours of row r of the tile at a time.
template <typename Writer>
__device__ __forceinline__ void write_tile(const float (&sum)[4][4][4], Writer write)
{
    const unsigned thread = thread_now();
    const int warp = thread / 32, g = thread % 32 / 4, t = thread % 4;
#pragma unroll
    for (int i = 0; i < 8; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const float two[2] = {sum[i / 2][j][i % 2 * 2], sum[i / 2][j][i % 2 * 2 + 1]};
            write(warp / 4 * 64 + i * 8 + g, warp % 4 * 32 + j * 8 + 2 * t, two);
        }
}

template <bool A_TRANSPOSED, bool B_TRANSPOSED, typename Epilogue>
__device__ void gemm_mma(const GemmProblem<float> &p, Epilogue epilogue)
{
    for (long long z = blockIdx.y; z < p.parts(); z += gridDim.y) {
        const int2 begin = tile_now<MMA_TILE, MMA_TILE>(p);
        MmaMatrix<!A_TRANSPOSED> a(p.a_at(z), p.a_sum, p.K, p.M, begin.x);
        MmaMatrix<B_TRANSPOSED> b(p.b_at(z), p.b_sum, p.K, p.N, begin.y);
        float sum[4][4][4] = {};
        sum_tile(a, b, SumSteps(p, z), sum);
        const int2 tile = tile_now<MMA_TILE, MMA_TILE>(p);
        write_tile(sum, [&](int r, int c, const float (&two)[2]) {
            const int row = tile.x + r, column = tile.y + c;
            if (row >= p.M) return;
            float* to = p.c_at(z) + (long long)row * p.N + column;
#pragma unroll
            for (int j = 0; j < 2; ++j)
                if (column + j < p.N) to[j] = epilogue(two[j], z, row, column + j);
        });
    }
}
