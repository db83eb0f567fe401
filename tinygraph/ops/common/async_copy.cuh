// Asynchronous copies from global to shared memory: cp.async, for sm_80 and later.
//
// The copy goes past the registers and runs on while the thread computes, so that the next tile
// travels during the work on this one. What a pipeline looks like:
//
//     cp_async<16>(&tile[next][i], &source[j]);   // start; every thread its own part
//     cp_async_commit_group();                    // these copies are one group
//     ... compute on tile[current] ...
//     cp_async_wait_group<0>();                   // at most 0 groups may still be under way
//     __syncthreads();                            // my copies are there; now everyone's are
//
// The wait covers this thread's own copies only: the barrier after it is not optional. Until the
// wait, the target holds nobody knows what. The emulator copies as late as it may, at the wait, so
// a kernel without the wait computes wrong numbers every time. Before sm_80 the copy is a plain
// load and store.
//
// Alignment: both addresses are multiples of BYTES. Source: PTX ISA, "cp.async",
// "cp.async.commit_group", "cp.async.wait_group".
#pragma once

#ifdef TINYGRAPH_EMULATOR

// Starts a copy of BYTES (4, 8 or 16) bytes.
template <int BYTES> inline void cp_async(void* shared, const void* global, TG_HERE)
{
    static_assert(BYTES == 4 || BYTES == 8 || BYTES == 16, "cp.async copies 4, 8 or 16 bytes");
    tg_copy_later(shared, global, BYTES, file, line);
}

// Closes a group: all copies started since the last one.
inline void cp_async_commit_group() { tg_copy_commit(); }

// Waits until at most GROUPS of this thread's latest groups are unfinished.
template <int GROUPS> inline void cp_async_wait_group() { tg_copy_wait(GROUPS); }

#elif __CUDA_ARCH__ >= 800

template <int BYTES> __device__ __forceinline__ void cp_async(void* shared, const void* global)
{
    static_assert(BYTES == 4 || BYTES == 8 || BYTES == 16, "cp.async copies 4, 8 or 16 bytes");
    unsigned target = (unsigned)__cvta_generic_to_shared(shared);
    if (BYTES == 16) {  // .cg: through L2 only, a tile is read once
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(target), "l"(global)
                     : "memory");
    } else {  // smaller copies exist as .ca only
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(target), "l"(global),
                     "n"(BYTES == 16 ? 8 : BYTES)
                     : "memory");
    }
}

__device__ __forceinline__ void cp_async_commit_group()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

template <int GROUPS> __device__ __forceinline__ void cp_async_wait_group()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(GROUPS) : "memory");
}

#else  // before sm_80

template <int BYTES> __device__ __forceinline__ void cp_async(void* shared, const void* global)
{
    static_assert(BYTES == 4 || BYTES == 8 || BYTES == 16, "cp.async copies 4, 8 or 16 bytes");
    if (BYTES == 4) *(unsigned*)shared = *(const unsigned*)global;
    if (BYTES == 8) *(uint2*)shared = *(const uint2*)global;
    if (BYTES == 16) *(uint4*)shared = *(const uint4*)global;
}

__device__ __forceinline__ void cp_async_commit_group() {}

template <int GROUPS> __device__ __forceinline__ void cp_async_wait_group() {}

#endif
