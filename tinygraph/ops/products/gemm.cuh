// GEMM: the matrix product, from one tile in shared memory to a tile in registers.
//
//   M K N      rows of A, summed axis, columns of B; all matrices row-major
//   z          one of `outer * inner` products, each with its own part of C
//   s          `sums` products are added up in one part of C, in the order s = 0, 1, ...
//
//   C[z] = epilogue(sum over s of op(A[z, s]) @ op(B[z, s]))        op: as stored, or transposed
//
// numpy's line, without an epilogue:   C = np.einsum("zsmk,zskn->zmn", A, B)
//
// Every step below computes the same 2 * M * N * K operations; they differ in how often they fetch
// a number for them.
//
// Step 0, not kept: one thread one element of C, reading A and B from global memory.  Each
// multiply-add fetches two numbers from far away, and each number of A is fetched N times.
//
// Step 1, gemm_shared_tile: a block computes 16x16 elements and fetches 16x16 tiles of A and B into
// shared memory once for all its threads.  A number comes from global memory N / 16 times, not N.
// What is slow now: each multiply-add still reads two numbers from shared memory, and a
// multiprocessor can read shared memory far less often than it can multiply.
//
// Step 2, gemm_register_tile: a block computes 64x64 elements, a thread 4x4 of them.  In one step
// of k a thread reads 4 numbers of A and 4 of B into registers and does 16 multiply-adds with
// them: half a read for each, where step 1 had two.  Global memory is read 16 bytes at a time.
// What is slow now: loads and arithmetic take turns, and each number in registers is used 4 times.
//
// Step 3, gemm_pipelined (gemm_pipelined.cuh): a block computes 128x128 elements, a thread 8x8 of
// them; the next panels are loaded while it multiplies, and what a load needs is worked out before
// the loop: 87 of 100 instructions that are issued in it are multiply-adds.
//
// Beside it, gemm_mma (gemm_mma.cuh): on tensor cores, for factors rounded to tf32 or bf16.
//
// A sum may be cut into chunks, which become products of their own (split-K): where C is small and
// the sum long, more blocks work on it.
//
// A transposed operand is not copied.  It is read along the axis on which it lies contiguous, and
// turned while it is written to shared memory.
//
// Deterministic: each element of C is summed by one thread, in the order of s and k; no atomics.
// C is written with plain stores, each element once.  T is float or double; integers work too up
// to step 2, without the 16-byte loads.
//
// Blocks of 256 threads; grid (tiles of C, parts of C).  All promise two blocks a multiprocessor,
// __launch_bounds__(THREADS, 2), which gives a thread 128 registers; by themselves compilers aim at
// 64, and spill.  As the assembler tells for sm_75 to sm_120, without spills:
//
//                             registers    shared memory    warps on a multiprocessor
//     step 3, float           120 - 128    33 KiB           16 (8 on sm_75, which has 64 KiB)
//     step 3, double           92 - 119    34 KiB           16 (8 on sm_75)
//     tensor cores            118 - 128    40 or 24 KiB     16 (sm_80 and later)
//
// 64 of the registers hold the part of C of a thread.  A third block would leave 85, too few; and
// while one block alone waits at its barriers nobody computes.  16 warps are enough
// where each thread has 64 independent sums.  Not measured on a GPU.
//
// Source: Volkov, Demmel, "Benchmarking GPUs to tune dense linear algebra", SC 2008.
#pragma once

#ifndef GEMM_TILE  // 16: gemm_shared_tile; 64: gemm_register_tile; 128: gemm_pipelined
#define GEMM_TILE 64
#endif

#include "gemm_problem.cuh"
#if GEMM_TILE == 128
#include "gemm_pipelined.cuh"
#endif
#ifdef GEMM_ON_TENSOR_CORES
#include "gemm_mma.cuh"
#endif

// ---- step 1: a tile of C for each block, its operands in shared memory --------------------------

// One thread one element of a 16x16 tile.  Neighbouring threads read neighbouring addresses,
// whichever axis that is.  Rows of 17 elements, so that a turned tile is written without bank
// conflicts: a column of 16 then lies in 16 different banks.
template <typename T, bool TRANSPOSED>
__device__ __forceinline__ void load_shared_tile(const T* matrix, T (&tile)[16][17], int rows,
                                                 int columns, int row0, int column0)
{
    const int fast = threadIdx.x % 16, slow = threadIdx.x / 16;
    const int r = TRANSPOSED ? fast : slow, c = TRANSPOSED ? slow : fast;
    const int row = row0 + r, column = column0 + c;
    const long long at =
        TRANSPOSED ? (long long)column * rows + row : (long long)row * columns + column;
    tile[r][c] = row < rows && column < columns ? matrix[at] : T(0);
}

template <typename T, bool A_TRANSPOSED, bool B_TRANSPOSED, typename Epilogue>
__device__ void gemm_shared_tile(const GemmProblem<T> &p, Epilogue epilogue)
{
    __shared__ T a_tile[16][17];  // [m][k]
    __shared__ T b_tile[16][17];  // [k][n]
    const int tiles_across = (p.N + 15) / 16;
    const int row0 = blockIdx.x / tiles_across * 16, column0 = blockIdx.x % tiles_across * 16;
    const int r = threadIdx.x / 16, c = threadIdx.x % 16;
    const int row = row0 + r, column = column0 + c;

    for (long long z = blockIdx.y; z < p.parts(); z += gridDim.y) {
        T sum = 0;
        for (SumSteps step(p, z); step.left; step.next()) {
            const T* a = p.a_at(z) + step.term * p.a_sum;
            const T* b = p.b_at(z) + step.term * p.b_sum;
            load_shared_tile<T, A_TRANSPOSED>(a, a_tile, p.M, p.K, row0, step.k);
            load_shared_tile<T, B_TRANSPOSED>(b, b_tile, p.K, p.N, step.k, column0);
            __syncthreads();  // the tiles are complete
#pragma unroll
            for (int k = 0; k < 16; ++k) sum += a_tile[r][k] * b_tile[k][c];
            __syncthreads();  // everyone has read them: the next tiles may overwrite
        }
        if (row < p.M && column < p.N)
            p.c_at(z)[(long long)row * p.N + column] = epilogue(sum, z, row, column);
    }
}

// ---- step 2: a tile of C for each thread, in registers ------------------------------------------

constexpr int TILE = 64;         // a block computes TILE x TILE elements of C
constexpr int PITCH = TILE + 4;  // row of a panel; a multiple of 4, for aligned 16-byte reads

// Fill panel[k][x] for STEP values of k and TILE values of x, the axis of M or of N.  Each of the
// 256 threads fetches four neighbours.  K_CONTIGUOUS: the matrix is stored (X, K), and the four lie
// along k: they go to four rows of the panel (two threads of a warp meet in each bank; a pitch
// without conflicts would not be a multiple of 4).  Else it is stored (K, X), and the four stay
// together.  Beyond an edge stand zeros, which add nothing.
template <typename T, bool K_CONTIGUOUS>
__device__ __forceinline__ void load_panel(const T* matrix, T (&panel)[STEP][PITCH], int K, int X,
                                           int k0, int x0, bool aligned)
{
    constexpr int FOURS = (K_CONTIGUOUS ? STEP : TILE) / 4;  // in one row of what is fetched
    const int fast = threadIdx.x % FOURS * 4, slow = threadIdx.x / FOURS;
    const int row = (K_CONTIGUOUS ? x0 : k0) + slow, first = (K_CONTIGUOUS ? k0 : x0) + fast;
    const int rows = K_CONTIGUOUS ? X : K, row_length = K_CONTIGUOUS ? K : X;
    const int count = row < rows ? row_length - first : 0;  // elements before the edge
    const T* from = matrix + (long long)row * row_length + first;
    T four[4];
    if (aligned && count >= 4) {
        load_four(from, four);
    } else {
        load_some(from, count, four);
    }
    if (K_CONTIGUOUS) {
#pragma unroll
        for (int i = 0; i < 4; ++i) panel[fast + i][slow] = four[i];
    } else {
        store_four(&panel[slow][fast], four);
    }
}

template <typename T, bool A_TRANSPOSED, bool B_TRANSPOSED, typename Epilogue>
__device__ void gemm_register_tile(const GemmProblem<T> &p, Epilogue epilogue)
{
    __shared__ __align__(16) T a_panel[STEP][PITCH];  // [k][m]
    __shared__ __align__(16) T b_panel[STEP][PITCH];  // [k][n]
    const int tiles_across = (p.N + TILE - 1) / TILE;
    const int row0 = blockIdx.x / tiles_across * TILE, column0 = blockIdx.x % tiles_across * TILE;
    const int r = threadIdx.x / 16 * 4, c = threadIdx.x % 16 * 4;  // this thread's 4x4 in the tile

    for (long long z = blockIdx.y; z < p.parts(); z += gridDim.y) {
        T sum[4][4] = {};
        for (SumSteps step(p, z); step.left; step.next()) {
            const T* a = p.a_at(z) + step.term * p.a_sum;
            const T* b = p.b_at(z) + step.term * p.b_sum;
            const bool a_aligned = rows_aligned(a, A_TRANSPOSED ? p.M : p.K);
            const bool b_aligned = rows_aligned(b, B_TRANSPOSED ? p.K : p.N);
            load_panel<T, !A_TRANSPOSED>(a, a_panel, p.K, p.M, step.k, row0, a_aligned);
            load_panel<T, B_TRANSPOSED>(b, b_panel, p.K, p.N, step.k, column0, b_aligned);
            __syncthreads();  // the panels are complete
#pragma unroll
            for (int k = 0; k < STEP; ++k) {
                T a_four[4], b_four[4];
                load_four(&a_panel[k][r], a_four);
                load_four(&b_panel[k][c], b_four);
#pragma unroll
                for (int i = 0; i < 4; ++i) {
#pragma unroll
                    for (int j = 0; j < 4; ++j) sum[i][j] += a_four[i] * b_four[j];
                }
            }
            __syncthreads();  // everyone has read them: the next panels may overwrite
        }
        const bool c_aligned = rows_aligned(p.c_at(z), p.N);
#pragma unroll
        for (int i = 0; i < 4; ++i)
            write_four(p, z, row0 + r + i, column0 + c, sum[i], c_aligned, epilogue);
    }
}

// The step that the macro GEMM_TILE names.
template <typename T, bool A_TRANSPOSED, bool B_TRANSPOSED, typename Epilogue>
__device__ __forceinline__ void gemm(const GemmProblem<T> &p, Epilogue epilogue)
{
#if GEMM_TILE == 16
    gemm_shared_tile<T, A_TRANSPOSED, B_TRANSPOSED>(p, epilogue);
#elif defined(GEMM_ON_TENSOR_CORES)
    gemm_mma<A_TRANSPOSED, B_TRANSPOSED>(p, epilogue);
#elif GEMM_TILE == 128
    gemm_pipelined<T, A_TRANSPOSED, B_TRANSPOSED>(p, epilogue);
#else
    gemm_register_tile<T, A_TRANSPOSED, B_TRANSPOSED>(p, epilogue);
#endif
}
