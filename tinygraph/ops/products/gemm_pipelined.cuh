// Step 3 of the GEMM ladder (gemm.cuh): loads of the next panels run during work on this one.
//
//   TM TN      a block computes TM x TN elements of C: 128 x 128 for float, 8x8 elements a thread;
//              64 x 64 for double, 4x4: twice as many registers would spill.  A convolution has lower
//              ones too: 64 x 128, 4x8 elements a thread, and 32 x 128, 4x4
//
// Each operand has two panels in shared memory, and a thread fetches its part of the next ones into
// registers before it multiplies; afterwards it writes them to the panels that nobody reads.  One
// barrier a step.  In one step of k a float thread reads 16 numbers and does 64 multiply-adds: a
// quarter of a read for each, where step 2 had a half.  The 8 rows of a thread are two fours, 64
// apart, and so are its columns: 16 threads then read 64 neighbours, in different banks.
//
// What is not a multiply-add takes the place of one: a multiprocessor issues one instruction of a
// warp at a time, of any kind.  So where a thread reads is worked out before the loop, global memory
// is read four numbers at once, and threads beyond an edge of the matrix read its last row or column
// instead of asking in each step; what they compute is never written.  Of 1163 to 1179 instructions
// that a warp issues for 16 numbers of k, loads and barrier among them, 1024 are multiply-adds: 87 %
// (matmul and linear, NVRTC 13.5, sm_90).
//
// An operand comes from a loader (gemm_loader.cuh), so that a convolution can build its panels out of
// an image: panel[k][x], k = 0 .. STEP-1, x = 0 .. TM-1 (of A) or 0 .. TN-1 (of B).  The result goes
// to a writer, write(r, c, four): four neighbours of row r of the tile, from its column c on.  It
// looks out for edges itself.
//
// Deterministic: each element is summed by one thread, in the order of the steps and of k, whichever
// way its factors were loaded.
#pragma once

#include "gemm_loader.cuh"
#include "gemm_problem.cuh"

template <typename T, int HEIGHT = sizeof(T) == 8 ? 64 : 128>
struct Pipelined {
    static constexpr int TM = HEIGHT, TN = sizeof(T) == 8 && TM == 64 ? 64 : 128;
    static constexpr int ACROSS = TM == 32 ? 32 : 16, DOWN = THREADS / ACROSS;  // threads
    static constexpr int ROWS = TM / DOWN / 4, COLUMNS = TN / ACROSS / 4;       // fours of a thread
    static constexpr int PAD = 4;  // turned writes meet no bank conflict
};

static_assert(Pipelined<float>::TM == Pipelined<float>::TN, "one loader serves A and B");

template <typename T, bool K_CONTIGUOUS, int TX = Pipelined<T>::TM>
using PanelMatrix = MatrixLoader<T, K_CONTIGUOUS, TX, false>;

// Add the products of one pair of panels to the thread's elements.
template <typename Tile, typename T, int STEP_A, int PITCH_A, int STEP_B, int PITCH_B>
__device__ __forceinline__ void multiply_panels(
    const T (&a_panel)[STEP_A][PITCH_A], const T (&b_panel)[STEP_B][PITCH_B],
    T (&sum)[Tile::ROWS * 4][Tile::COLUMNS][4])
{
    constexpr int ROWS = Tile::ROWS, COLUMNS = Tile::COLUMNS;
    const unsigned t = thread_now();
    const T *a_row = &a_panel[0][t / Tile::ACROSS * 4];
    const T *b_row = &b_panel[0][t % Tile::ACROSS * 4];
    const T* const end = a_row + STEP * PITCH_A;
    const auto multiply = [&](const T* a_numbers, const T* b_numbers) {
        T a[ROWS][4], b[COLUMNS][4];
#pragma unroll
        for (int i = 0; i < ROWS; ++i) load_four(a_numbers + i * 4 * Tile::DOWN, a[i]);
#pragma unroll
        for (int j = 0; j < COLUMNS; ++j) load_four(b_numbers + j * 4 * Tile::ACROSS, b[j]);
#pragma unroll
        for (int i = 0; i < ROWS * 4; ++i)
#pragma unroll
            for (int j = 0; j < COLUMNS * 4; ++j)
                sum[i][j / 4][j % 4] += a[i / 4][i % 4] * b[j / 4][j % 4];
    };
#pragma unroll 1  // two at a time: of four at once compilers read ahead until registers spill
    for (; a_row != end; a_row += 2 * PITCH_A, b_row += 2 * PITCH_B) {
        multiply(a_row, b_row);
        multiply(a_row + PITCH_A, b_row + PITCH_B);
    }
}

// The thread's elements of one tile of C: the sum over `steps`.  All threads of the block call it
// together, for one tile after the other.
template <typename Tile, typename T, typename LoaderA, typename LoaderB>
__device__ __forceinline__ void sum_tile(LoaderA &a, LoaderB &b, const SumSteps &steps,
                                         T (&sum)[Tile::ROWS * 4][Tile::COLUMNS][4])
{
    struct __align__(16) Panels {
        T a[STEP][Tile::TM + Tile::PAD], b[STEP][Tile::TN + Tile::PAD];
    };
    __shared__ Panels panels[2];
    pipeline(panels, a, b, steps,
             [&](const auto &a_panel, const auto &b_panel) {
                 multiply_panels<Tile>(a_panel, b_panel, sum);
             });
}

// write(r, c, four) for all of them.
template <typename Tile, typename T, typename Writer>
__device__ __forceinline__ void write_tile(const T (&sum)[Tile::ROWS * 4][Tile::COLUMNS][4],
                                           Writer write)
{
    const int r = thread_now() / Tile::ACROSS * 4, c = thread_now() % Tile::ACROSS * 4;
#pragma unroll
    for (int i = 0; i < Tile::ROWS * 4; ++i)
#pragma unroll
        for (int j = 0; j < Tile::COLUMNS; ++j)
            write(i / 4 * 4 * Tile::DOWN + r + i % 4, j * 4 * Tile::ACROSS + c, sum[i][j]);
}

template <typename T, bool A_TRANSPOSED, bool B_TRANSPOSED, typename Epilogue>
__device__ void gemm_pipelined(const GemmProblem<T> &p, Epilogue epilogue)
{
    using Tile = Pipelined<T>;
    for (long long z = blockIdx.y; z < p.parts(); z += gridDim.y) {
        const int2 begin = tile_now<Tile::TM, Tile::TN>(p);
        PanelMatrix<T, !A_TRANSPOSED> a(p.a_at(z), p.a_sum, p.K, p.M, begin.x);
        PanelMatrix<T, B_TRANSPOSED> b(p.b_at(z), p.b_sum, p.K, p.N, begin.y);
        T sum[Tile::ROWS * 4][Tile::COLUMNS][4] = {};
        sum_tile<Tile>(a, b, SumSteps(p, z), sum);
        const bool aligned = rows_aligned(p.c_at(z), p.N);
        const int2 tile = tile_now<Tile::TM, Tile::TN>(p);
        write_tile<Tile>(sum, [&](int r, int c, const T (&four)[4]) {
            write_four(p, z, tile.x + r, tile.y + c, four, aligned, epilogue);
        });
    }
}
