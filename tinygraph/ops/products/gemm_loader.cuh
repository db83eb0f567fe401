// What brings an operand of gemm_pipelined.cuh and gemm_mma.cuh into shared memory, a panel for each
// step of STEP numbers of the summed axis.
//
//     struct Loader {
//         // Whether steps inside of a term have a loop of their own: where they are less work.
//         static constexpr bool SHORT_WHEN_WHOLE;
//         // The greatest k0 of a step that may be fetched as a whole.  Asked for before begin.
//         __device__ int last_whole() const;
//         // Called once, before the first step: it begins at number k0 of term s.
//         __device__ void begin(int s, int k0);
//         // Called between two terms.
//         __device__ void next_term();
//         // Read this thread's part of the panel of the step at k0 of term s into registers.  Numbers
//         // of the summed axis from K on are T(0).  Steps come in order, one after the other;
//         // turn is 0 and 1 by turns.
//         __device__ void fetch(int s, int k0, bool whole, int turn);
//         // Write it to the panel.  Rows or columns of the operand beyond an edge may be anything.
//         template <typename Panel>
//         __device__ void store(Panel &panel) const;
//     };
//
// The block's 256 threads share the work as the loader likes; each element is written once.  None of
// the three uses a barrier: the main loop does.
//
// Through registers, and not by cp.async: on its way a number can be turned or rounded, and a compiler
// puts three more instructions before each cp.async (NVRTC 13.5, sm_90).
#pragma once

#include "gemm_problem.cuh"

// Both operands through two panels each: while multiply(panel of A, of B) works on this pair, the
// numbers of the next are on their way from global memory to registers.  One barrier a step: the
// other pair is written while slow threads still read this one.
//
// Inside of a term nothing has to be asked: those steps have a loop of their own, where a warp
// issues loads, products and stores and little else.  Two steps in one turn of it would spare a few
// instructions more, but then compilers move products behind the barrier, and stores wait for loads.
template <typename Panels, typename LoaderA, typename LoaderB, typename Multiply>
__device__ __forceinline__ void pipeline(Panels (&panels)[2], LoaderA &a, LoaderB &b, SumSteps step,
                                         Multiply multiply)
{
    if (!step.left) return;
    const int last_whole = min(a.last_whole(), b.last_whole());
    int turn = 0;  // of the panels that are filled; work is on the others
    const auto fetch = [&](bool whole) {
        a.fetch(step.term, step.k, whole, turn);
        b.fetch(step.term, step.k, whole, turn);
    };
    const auto store = [&]() {
        a.store(panels[turn].a);
        b.store(panels[turn].b);
        turn = 1 - turn;
        __syncthreads();  // the panels are complete, and everyone has read the others
    };
    const auto work = [&]() { multiply(panels[1 - turn].a, panels[1 - turn].b); };
    a.begin(step.term, step.k);
    b.begin(step.term, step.k);
    fetch(step.k <= last_whole);
    store();
    while (step.left) {
        if constexpr (LoaderB::SHORT_WHEN_WHOLE) {
#pragma unroll 1
            while (step.left > 1 && step.k + STEP < last_whole) {
                step.k += STEP;
                --step.left;
                fetch(true);
                work();
                store();
            }
        }
        step.next();
        if (step.left) {
            if (step.k == 0) {
                a.next_term();
                b.next_term();
            }
            fetch(step.k <= last_whole);
        }
        work();
        store();  // after the last step what they hold once more: nobody reads it
    }
}

// The loader of a matrix, stored (X, K) if K_CONTIGUOUS, else (K, X), for panels of TX rows or columns:
// panel[x][k] if X_ROWS, else panel[k][x].
//
// A thread fetches fours of neighbours in memory, 16 bytes at once for float.  Neighbouring threads
// fetch at least a sector of 32 bytes together; what is turned on the way to panel[k][x] lies in 32
// different banks.  Where fours do not begin on 16 bytes, and in the last step of a term if it is not
// whole, numbers are fetched one by one.  A row or column beyond the edge is the last one once more.
template <typename T, bool K_CONTIGUOUS, int TX, bool X_ROWS>
struct MatrixLoader {
    // Fours of a thread.  Where a panel has fewer of them than the block has threads, whoever uses the
    // loader calls it in the first threads only.
    static constexpr int COUNT = STEP * TX / 4 < THREADS ? 1 : STEP * TX / 4 / THREADS;
    // Threads that fetch neighbouring fours, and how far along k a thread's fours are apart.
    static constexpr int NEAR = K_CONTIGUOUS || X_ROWS ? 32 / (4 * sizeof(T)) : TX / 4;
    static constexpr int FURTHER = X_ROWS && !K_CONTIGUOUS ? 1 : STEP / COUNT;

    static constexpr bool SHORT_WHEN_WHOLE = true;

    const T* next;   // where the thread's first four of the next step lies
    long long term;  // from one term of the sum to the next
    int K, X, x0;
    T some[COUNT][4];

    __device__ __forceinline__ MatrixLoader(const T* matrix, long long term, int K, int X, int x0)
        : next(matrix), term(term), K(K), X(X), x0(x0)
    {
    }

    __device__ __forceinline__ int last_whole() const
    {
        const int row_length = K_CONTIGUOUS ? K : X;
        const bool in_fours = reinterpret_cast<unsigned long long>(next) % 16 == 0 &&
                              row_length % 4 == 0 && term % 4 == 0;
        return in_fours ? K - STEP : -1;
    }

    // Where the thread's first four stands in the panel.
    static __device__ __forceinline__ int k(unsigned thread = thread_now())
    {
        const unsigned t = thread % THREADS;
        if (K_CONTIGUOUS) return (t / NEAR / TX * NEAR + t % NEAR) * 4;
        return t / NEAR % (STEP / COUNT) * (X_ROWS ? COUNT : 1);
    }
    static __device__ __forceinline__ int x(unsigned thread = thread_now())
    {
        const unsigned t = thread % THREADS;
        if (K_CONTIGUOUS) return t / NEAR % TX;
        return (t / (NEAR * STEP / COUNT) * NEAR + t % NEAR) * 4;
    }
    // Its row or column in the matrix.
    __device__ __forceinline__ int place() const
    {
        return min(x0 + x(), K_CONTIGUOUS ? X - 1 : (X - 1) / 4 * 4);
    }
    // How far apart numbers lie that follow each other along k.
    __device__ __forceinline__ long long pitch() const
    {
        return K_CONTIGUOUS ? 1 : in_registers(X);
    }

    __device__ __forceinline__ void begin(int s, int k0)
    {
        next += s * term + (k0 + k()) * pitch() + place() * (K_CONTIGUOUS ? (long long)K : 1);
    }

    __device__ __forceinline__ void next_term()
    {
        next += term - (K + STEP - 1) / STEP * STEP * pitch();
    }

    __device__ __forceinline__ void fetch(int, int k0, bool whole, int)
    {
        if (whole) {
            fetch_fours();
        } else {
            fetch_one_by_one(K - k0 - k());
        }
        next += STEP * pitch();
    }
    __device__ __forceinline__ void fetch_fours()
    {
#pragma unroll
        for (int i = 0; i < COUNT; ++i) load_four(next + i * FURTHER * pitch(), some[i]);
    }
    // The first four begins `rest` numbers before the end of the term.
    __device__ __forceinline__ void fetch_one_by_one(int rest)
    {
#pragma unroll
        for (int i = 0; i < COUNT; ++i, rest -= FURTHER) {
            const int count = K_CONTIGUOUS ? rest : rest > 0 ? X - place() : 0;
            load_some(next + i * FURTHER * pitch(), count, some[i]);
        }
    }

    template <int ROWS, int PITCH>
    __device__ __forceinline__ void store(T (&panel)[ROWS][PITCH]) const
    {
        static_assert(!X_ROWS, "gemm_mma.cuh has a store of its own, which rounds");
        T* to = &panel[k()][x()];
#pragma unroll
        for (int i = 0; i < COUNT; ++i) {
            if (K_CONTIGUOUS) {
#pragma unroll
                for (int j = 0; j < 4; ++j) to[(i * FURTHER + j) * PITCH] = some[i][j];
            } else {
                store_four(to + i * FURTHER * PITCH, some[i]);
            }
        }
    }
};
