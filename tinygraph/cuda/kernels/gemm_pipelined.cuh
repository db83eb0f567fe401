// Step 3 of the GEMM ladder (gemm.cuh): loads of the next panels run during work on this one.
//
//   TM TN TK   a block computes TM x TN elements of C and takes TK of the summed axis in a step:
//              128 x 128 x 8 for float, 8x8 elements a thread; 64 x 64 x 8 for double, 4x4: twice
//              as many registers would spill
//
// Each operand has two panels in shared memory.  While the block multiplies out of one pair,
// cp.async fills the other; one barrier a step ends both.  In one step of k a float thread reads 16
// numbers and does 64 multiply-adds: a quarter of a read for each, where step 2 had a half.  The 8
// rows of a thread are two fours, 64 apart, and so are its columns: 16 threads then read 64
// neighbours, which lie in different banks.
//
// An operand comes from a loader, so that a convolution can build its panels out of an image:
//
//     struct Loader {
//         // Write panel[k][x], k = 0 .. TK-1, x = 0 .. TM-1 (of A) or 0 .. TN-1 (of B): the
//         // operand's element at k0 + k of term s, row or column x0 + x, x0 being the loader's own
//         // business; T(0) beyond an edge.
//         template <typename T, int TK, int PITCH>
//         __device__ void load(T (&panel)[TK][PITCH], int s, int k0) const;
//     };
//
//     The block's 256 threads share the work as the loader likes; each element is written once.
//     Elements may be copied by cp_async<4, 8 or 16> (rows of a panel begin on 16 bytes) or stored
//     plainly; load neither waits, commits nor uses a barrier: the main loop does.  Between a call
//     of load and the barrier nobody reads the panel.
//
// and the result goes to a writer, write(r, c, four): four neighbours of row r of the tile, from
// its column c on.  It looks out for edges itself.  copy_or_zero and TiledMatrix below show how.
//
// Deterministic: each element is summed by one thread, in the order of the steps and of k.
// Before sm_80 cp.async is a load and a store, which wait for memory before the arithmetic begins.
#pragma once

#include "async_copy.cuh"
#include "gemm_problem.cuh"

template <typename T>
struct Pipelined {
    static constexpr int TM = sizeof(T) == 8 ? 64 : 128, TN = TM, TK = 8;
    static constexpr int PAD = 16 / sizeof(T);  // 16 bytes: turned writes meet no bank conflict
    static constexpr int ROWS = TM / 64, COLUMNS = TN / 64;  // fours of a thread
};

static_assert(Pipelined<float>::TM == Pipelined<float>::TN, "one loader serves A and B");

// The loader of a matrix, stored (X, K) if K_CONTIGUOUS, else (K, X).
//
// Along k: 8 neighbouring threads copy 8 neighbours in memory, a whole sector, one by one, for they
// go to 8 rows of the panel.  Along x: 16 bytes at once where rows begin on 16 bytes.
template <typename T, bool K_CONTIGUOUS>
struct TiledMatrix {
    const T* matrix;
    long long term;  // from one term of the sum to the next
    int K, X, x0;

    template <int ROWS, int PITCH>
    __device__ __forceinline__ void load(T (&panel)[ROWS][PITCH], int s, int k0) const
    {
        constexpr int TK = Pipelined<T>::TK, TX = Pipelined<T>::TM, VECTOR = 16 / sizeof(T);
        const T* from = matrix + s * term;
        if constexpr (K_CONTIGUOUS) {
            const int k = threadIdx.x % TK, first = threadIdx.x / TK;
            const T* source = from + (long long)(x0 + first) * K + k0 + k;
            const int rows = k0 + k < K ? X - x0 : 0;  // inside
#pragma unroll 2
            for (int x = first; x < TX; x += THREADS / TK, source += THREADS / TK * (long long)K)
                copy_or_zero(&panel[k][x], source, x < rows);
        } else {
            const bool aligned = rows_aligned(from, X);
#pragma unroll
            for (int i = threadIdx.x * VECTOR; i < TK * TX; i += THREADS * VECTOR) {
                const int k = i / TX, x = i % TX;
                const int count = k0 + k < K ? X - (x0 + x) : 0;  // elements before the edge
                const T* source = from + (long long)(k0 + k) * X + x0 + x;
                if (aligned && count >= VECTOR) {
                    cp_async<16>(&panel[k][x], source);
                } else {
#pragma unroll
                    for (int j = 0; j < VECTOR; ++j)
                        copy_or_zero(&panel[k][x + j], source + j, j < count);
                }
            }
        }
    }
};

// Add the products of one pair of panels to the thread's elements.
template <typename T, int TK_A, int PITCH_A, int TK_B, int PITCH_B>
__device__ __forceinline__ void multiply_panels(
    const T (&a_panel)[TK_A][PITCH_A], const T (&b_panel)[TK_B][PITCH_B],
    T (&sum)[Pipelined<T>::ROWS * 4][Pipelined<T>::COLUMNS][4])
{
    constexpr int ROWS = Pipelined<T>::ROWS, COLUMNS = Pipelined<T>::COLUMNS;
    const int r = threadIdx.x / 16 * 4, c = threadIdx.x % 16 * 4;
#pragma unroll 1  // more of them at once, and compilers read ahead until registers spill
    for (int k = 0; k < Pipelined<T>::TK; ++k) {
        T a[ROWS][4], b[COLUMNS][4];
#pragma unroll
        for (int i = 0; i < ROWS; ++i) load_four(&a_panel[k][r + i * 64], a[i]);
#pragma unroll
        for (int j = 0; j < COLUMNS; ++j) load_four(&b_panel[k][c + j * 64], b[j]);
#pragma unroll
        for (int i = 0; i < ROWS * 4; ++i)
#pragma unroll
            for (int j = 0; j < COLUMNS * 4; ++j)
                sum[i][j / 4][j % 4] += a[i / 4][i % 4] * b[j / 4][j % 4];
    }
}

// One tile of C: the sum over `steps`, then `write` for all its elements.  All threads of the block
// call it together; a block may call it again for its next tile.
template <typename T, typename LoaderA, typename LoaderB, typename Writer>
__device__ __forceinline__ void pipelined_tile(const LoaderA &a, const LoaderB &b,
                                               const SumSteps &steps, Writer write)
{
    using Tile = Pipelined<T>;
    __shared__ __align__(16) T a_panels[2][Tile::TK][Tile::TM + Tile::PAD];
    __shared__ __align__(16) T b_panels[2][Tile::TK][Tile::TN + Tile::PAD];
    T sum[Tile::ROWS * 4][Tile::COLUMNS][4] = {};
    pipeline(a_panels, b_panels, a, b, steps,
             [&](const auto &a_panel, const auto &b_panel) { multiply_panels(a_panel, b_panel, sum); });

    const int r = threadIdx.x / 16 * 4, c = threadIdx.x % 16 * 4;
#pragma unroll
    for (int i = 0; i < Tile::ROWS * 4; ++i)
#pragma unroll
        for (int j = 0; j < Tile::COLUMNS; ++j)
            write(i / 4 * 64 + r + i % 4, j * 64 + c, sum[i][j]);
}

template <typename T, bool A_TRANSPOSED, bool B_TRANSPOSED, typename Epilogue>
__device__ void gemm_pipelined(const GemmProblem<T> &p, Epilogue epilogue)
{
    using Tile = Pipelined<T>;
    const int tiles_across = (p.N + Tile::TN - 1) / Tile::TN;
    const int row0 = blockIdx.x / tiles_across * Tile::TM;
    const int column0 = blockIdx.x % tiles_across * Tile::TN;

    for (long long z = blockIdx.y; z < p.parts(); z += gridDim.y) {
        const TiledMatrix<T, !A_TRANSPOSED> a = {p.a_at(z), p.a_sum, p.K, p.M, row0};
        const TiledMatrix<T, B_TRANSPOSED> b = {p.b_at(z), p.b_sum, p.K, p.N, column0};
        const bool aligned = rows_aligned(p.c_at(z), p.N);
        pipelined_tile<T>(a, b, SumSteps(p, Tile::TK, z), [&](int r, int c, const T (&four)[4]) {
            write_four(p, z, row0 + r, column0 + c, four, aligned, epilogue);
        });
    }
}
