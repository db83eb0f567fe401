// Cooperative groups: threads that work together, as objects with a size, a rank and a barrier.
//
//     thread_block            all threads of a block                            __syncthreads
//     thread_block_tile<N>    N lanes of a warp, in a row                        masks of these lanes
//     coalesced_group         the lanes of a warp that are at one place          their mask
//     grid_group              all threads of a cooperative launch
//     thread_group            any of the first three
//
// A lane of a group is known by its rank in it. Tiles have at most 32 threads, and there are no
// multi_grid groups and no clusters.
//
// Source: CUDA C++ Programming Guide, "Cooperative Groups".
#pragma once

#include "cuda_emulator.h"

#ifndef TINYGRAPH_PROGRAM
#define tg_threadIdx threadIdx
#define tg_blockIdx blockIdx
#define tg_blockDim blockDim
#define tg_gridDim gridDim
#endif

namespace cooperative_groups {

enum tg_kind { tg_block, tg_lanes };

// ---- What groups of lanes of one warp do; `mask` names the lanes. ----------------------------------

struct tg_lane_group {
    unsigned mask;

    TG_INLINE unsigned tg_rank() const { return __popc(mask & ((1u << tg_lane()) - 1)); }
    // The lane of the warp that has a rank in the group.
    TG_INLINE int tg_lane_of(unsigned rank) const
    {
        if (mask == 0xffffffffu) return (int)(rank & 31);
        unsigned rest = mask;
        for (unsigned i = 0; i < rank && (rest & (rest - 1)); i++) rest &= rest - 1;
        return __ffs((int)rest) - 1;
    }
    // Bits by lane as bits by rank.
    TG_INLINE unsigned tg_by_rank(unsigned lanes) const
    {
        unsigned packed = 0, rank = 0;
        for (unsigned rest = mask; rest; rest &= rest - 1, rank++)
            packed |= (lanes >> (__ffs((int)rest) - 1) & 1u) << rank;
        return packed;
    }
    TG_INLINE unsigned long long size() const { return __popc(mask); }
    TG_INLINE unsigned long long num_threads() const { return __popc(mask); }
    TG_INLINE unsigned long long thread_rank() const { return tg_rank(); }
    void sync(TG_HERE) const { __syncwarp(mask, file, line); }

    template <class T> T tg_from(T value, int lane, const char *file, int line) const
    {
        if constexpr (sizeof(T) <= 8) {
            return tg_shuffle_value(mask, value, lane, file, line);
        } else {
            T all[32];
            tg_warp_exchange(mask, &value, sizeof(T), all, file, line);
            return all[lane];
        }
    }
    template <class T> T shfl(T value, unsigned rank, TG_HERE) const
    {
        return tg_from(value, tg_lane_of(rank % (unsigned)size()), file, line);
    }
    template <class T> T shfl_up(T value, unsigned delta, TG_HERE) const
    {
        const unsigned rank = tg_rank();
        return tg_from(value, tg_lane_of(rank < delta ? rank : rank - delta), file, line);
    }
    template <class T> T shfl_down(T value, unsigned delta, TG_HERE) const
    {
        const unsigned rank = tg_rank();
        return tg_from(value, tg_lane_of(rank + delta < size() ? rank + delta : rank), file, line);
    }
    template <class T> T shfl_xor(T value, unsigned ranks, TG_HERE) const
    {
        const unsigned other = tg_rank() ^ ranks;
        return tg_from(value, tg_lane_of(other < size() ? other : tg_rank()), file, line);
    }
    int any(int predicate, TG_HERE) const { return __any_sync(mask, predicate, file, line); }
    int all(int predicate, TG_HERE) const { return __all_sync(mask, predicate, file, line); }
    unsigned ballot(int predicate, TG_HERE) const
    {
        return tg_by_rank(__ballot_sync(mask, predicate, file, line));
    }
    template <class T> unsigned match_any(T value, TG_HERE) const
    {
        return tg_by_rank(__match_any_sync(mask, value, file, line));
    }
    template <class T> unsigned match_all(T value, int &same, TG_HERE) const
    {
        return tg_by_rank(__match_all_sync(mask, value, &same, file, line));
    }
};

struct coalesced_group : tg_lane_group {
    TG_INLINE unsigned long long meta_group_rank() const { return 0; }
    TG_INLINE unsigned long long meta_group_size() const { return 1; }
};

inline coalesced_group coalesced_threads(TG_HERE) { return {{tg_active_mask(file, line)}}; }

// ---- The block and the grid. -------------------------------------------------------------------------

struct thread_block {
    void sync(TG_HERE) const { tg_barrier(file, line); }
    TG_INLINE unsigned long long size() const
    {
        return (unsigned long long)tg_blockDim.x * tg_blockDim.y * tg_blockDim.z;
    }
    TG_INLINE unsigned long long num_threads() const { return size(); }
    TG_INLINE unsigned long long thread_rank() const { return tg_self()->linear; }
    TG_INLINE dim3 group_index() const { return dim3(tg_blockIdx.x, tg_blockIdx.y, tg_blockIdx.z); }
    TG_INLINE dim3 thread_index() const { return dim3(tg_threadIdx.x, tg_threadIdx.y, tg_threadIdx.z); }
    TG_INLINE dim3 group_dim() const { return tg_blockDim; }
    TG_INLINE dim3 dim_threads() const { return tg_blockDim; }
};
TG_INLINE thread_block this_thread_block() { return thread_block(); }

struct grid_group {
    void sync(TG_HERE) const { tg_grid_barrier(file, line); }
    TG_INLINE bool is_valid() const { return true; }
    TG_INLINE unsigned long long num_blocks() const
    {
        return (unsigned long long)tg_gridDim.x * tg_gridDim.y * tg_gridDim.z;
    }
    TG_INLINE unsigned long long size() const { return num_blocks() * this_thread_block().size(); }
    TG_INLINE unsigned long long num_threads() const { return size(); }
    TG_INLINE unsigned long long block_rank() const
    {
        return tg_blockIdx.x + (unsigned long long)tg_gridDim.x * (tg_blockIdx.y + (unsigned long long)tg_gridDim.y * tg_blockIdx.z);
    }
    TG_INLINE unsigned long long thread_rank() const
    {
        return block_rank() * this_thread_block().size() + tg_self()->linear;
    }
    TG_INLINE dim3 group_dim() const { return tg_gridDim; }
    TG_INLINE dim3 dim_blocks() const { return tg_gridDim; }
    TG_INLINE dim3 block_index() const { return dim3(tg_blockIdx.x, tg_blockIdx.y, tg_blockIdx.z); }
};
TG_INLINE grid_group this_grid() { return grid_group(); }

// ---- Tiles: N lanes in a row. --------------------------------------------------------------------------

TG_INLINE unsigned tg_tile_mask(unsigned threads)
{
    const unsigned first = tg_lane() / threads * threads;
    const unsigned long long block = this_thread_block().size(), warp = tg_self()->warp * 32ull;
    const unsigned there = block - warp >= 32 ? 0xffffffffu : (1u << (block - warp)) - 1;
    return (threads == 32 ? 0xffffffffu : ((1u << threads) - 1) << first) & there;
}

template <unsigned N, class Parent = void> struct thread_block_tile : tg_lane_group {
    static_assert(N > 0 && N <= 32 && !(N & (N - 1)), "the emulator has tiles of 1, 2, 4, ... 32 threads");
    TG_INLINE thread_block_tile() : tg_lane_group{tg_tile_mask(N)} {}
    template <class Other>
    TG_INLINE thread_block_tile(const thread_block_tile<N, Other> &other) : tg_lane_group(other)
    {
    }
    static constexpr unsigned long long size() { return N; }
    static constexpr unsigned long long num_threads() { return N; }
    TG_INLINE unsigned long long thread_rank() const { return tg_lane() % N; }
    TG_INLINE unsigned long long meta_group_rank() const { return tg_self()->linear / N; }
    TG_INLINE unsigned long long meta_group_size() const
    {
        return (this_thread_block().size() + N - 1) / N;
    }
};

// A tile of a tile counts itself within the wider one.
template <unsigned N, unsigned M, class Parent>
struct thread_block_tile<N, thread_block_tile<M, Parent>> : thread_block_tile<N, void> {
    TG_INLINE unsigned long long meta_group_rank() const { return tg_lane() % M / N; }
    TG_INLINE unsigned long long meta_group_size() const { return M / N; }
};

template <unsigned N, class Parent> TG_INLINE thread_block_tile<N, Parent> tiled_partition(const Parent &)
{
    return thread_block_tile<N, Parent>();
}
template <unsigned N> TG_INLINE thread_block_tile<N, thread_block> tiled_partition(const thread_block &)
{
    return thread_block_tile<N, thread_block>();
}

// ---- A group whose kind is known at run time. -------------------------------------------------------------

struct thread_group {
    tg_kind kind;
    tg_lane_group lanes;
    TG_INLINE thread_group(const thread_block &) : kind(tg_block), lanes{0} {}
    TG_INLINE thread_group(const tg_lane_group &group) : kind(tg_lanes), lanes(group) {}
    TG_INLINE unsigned long long size() const
    {
        return kind == tg_block ? this_thread_block().size() : lanes.size();
    }
    TG_INLINE unsigned long long num_threads() const { return size(); }
    TG_INLINE unsigned long long thread_rank() const
    {
        return kind == tg_block ? tg_self()->linear : lanes.tg_rank();
    }
    void sync(TG_HERE) const
    {
        if (kind == tg_block)
            tg_barrier(file, line);
        else
            lanes.sync(file, line);
    }
};

inline thread_group tiled_partition(const thread_group &group, unsigned threads, TG_HERE)
{
    if (threads == 0 || threads > 32 || threads & (threads - 1))
        tg_trap("tiled_partition: the emulator has tiles of 1, 2, 4, ... 32 threads", file, line);
    if (group.kind == tg_block) return tg_lane_group{tg_tile_mask(threads)};
    unsigned mask = 0, first = group.lanes.tg_rank() / threads * threads;
    for (unsigned i = first; i < first + threads && i < group.size(); i++)
        mask |= 1u << group.lanes.tg_lane_of(i);
    return tg_lane_group{mask};
}
inline thread_group tiled_partition(const thread_block &group, unsigned threads, TG_HERE)
{
    return tiled_partition(thread_group(group), threads, file, line);
}
inline coalesced_group tiled_partition(const coalesced_group &group, unsigned threads, TG_HERE)
{
    return {tiled_partition(thread_group(group), threads, file, line).lanes};
}

// The lanes of a group that say the same.
inline coalesced_group labeled_partition(const tg_lane_group &group, int label, TG_HERE)
{
    return {{__match_any_sync(group.mask, label, file, line)}};
}
inline coalesced_group binary_partition(const tg_lane_group &group, bool label, TG_HERE)
{
    return labeled_partition(group, label, file, line);
}

// ---- Free functions. ------------------------------------------------------------------------------------

template <class Group> void sync(const Group &group, TG_HERE) { group.sync(file, line); }
template <class Group> TG_INLINE unsigned long long thread_rank(const Group &group) { return group.thread_rank(); }
template <class Group> TG_INLINE unsigned long long group_size(const Group &group) { return group.size(); }

template <class Group, class F> void invoke_one(const Group &group, F &&function)
{
    if (group.thread_rank() == 0) function();
}

} // namespace cooperative_groups
