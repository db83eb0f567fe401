/* Where threads wait for each other: block barriers, warp barriers, shuffles, votes, fences; and what
 * all headers call of the run time.
 *
 * Each call hands its source position to the run time, so that a message can name the line.
 */
#pragma once

extern "C" {
void tg_barrier(const char *file, int line);
int tg_barrier_reduce(int op, int predicate, const char *file, int line); /* 0 or, 1 and, 2 count */
void tg_warp_barrier(unsigned mask, const char *file, int line);
unsigned long long tg_shuffle(unsigned mask, unsigned long long value, int source,
                              const char *file, int line);
unsigned tg_ballot(unsigned mask, int predicate, const char *file, int line);
/* Gives the lanes of the mask that have not left. */
unsigned tg_warp_exchange(unsigned mask, const void *mine, unsigned bytes, void *all32,
                          const char *file, int line);
unsigned tg_active_mask(const char *file, int line);
void tg_grid_barrier(const char *file, int line); /* of all blocks of a cooperative launch */
unsigned tg_lane(void);
void tg_fence(int scope); /* 0 block, 1 device, 2 system */
void tg_happens(int after, const void *address);
void tg_access(const void *address, unsigned size, int is_write, const char *file, int line);
void tg_before_swap(const void *address, const void *expected, unsigned size);
void tg_atomic_access(const void *address, unsigned size, const char *file, int line);
int tg_contended(const void *address, const char *file, int line);
void tg_exchanged(const void *address, int was_zero, int is_zero, const char *file, int line);
void tg_use(const void *value, unsigned size, const char *file, int line);
void tg_atomic_pause(void); /* a thread that spins on an atomic gives way to others */
void tg_nap(void);          /* lets other threads run */
void tg_trap(const char *what, const char *file, int line); /* stops the launch with a message */
void tg_copy_later(void *shared, const void *global, unsigned size, const char *file, int line);
void tg_copy_commit(void);
void tg_copy_wait(unsigned groups_left);
}

#include "tg_attributes.h"

/* ---- barriers -------------------------------------------------------------------------------- */

inline void __syncthreads(TG_HERE) { tg_barrier(file, line); }
inline int __syncthreads_or(int p, TG_HERE) { return tg_barrier_reduce(0, p, file, line); }
inline int __syncthreads_and(int p, TG_HERE) { return tg_barrier_reduce(1, p, file, line); }
inline int __syncthreads_count(int p, TG_HERE) { return tg_barrier_reduce(2, p, file, line); }
inline void __syncwarp(unsigned mask = 0xffffffffu, TG_HERE) { tg_warp_barrier(mask, file, line); }

/* ---- shuffles: each lane gives a value and takes the one of another lane ---------------------- */

template <class T>
inline T tg_shuffle_value(unsigned mask, T value, int source, const char *file, int line) {
    static_assert(sizeof(T) <= 8, "a shuffle moves at most 8 bytes");
    unsigned long long bits = 0;
    __builtin_memcpy(&bits, &value, sizeof(T));
    bits = tg_shuffle(mask, bits, source, file, line);
    __builtin_memcpy(&value, &bits, sizeof(T));
    return value;
}

/* A warp is cut into segments of `width` lanes; a source outside its segment means oneself. */
template <class T>
inline T __shfl_sync(unsigned mask, T value, int source, int width = 32, TG_HERE) {
    int lane = tg_lane();
    return tg_shuffle_value(mask, value, (lane & ~(width - 1)) | (source & (width - 1)), file, line);
}

template <class T>
inline T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, TG_HERE) {
    int lane = tg_lane(), source = lane - (int)delta;
    return tg_shuffle_value(mask, value, source < (lane & ~(width - 1)) ? lane : source, file, line);
}

template <class T>
inline T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, TG_HERE) {
    int lane = tg_lane(), source = lane + (int)delta;
    return tg_shuffle_value(mask, value, source > (lane | (width - 1)) ? lane : source, file, line);
}

template <class T>
inline T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = 32, TG_HERE) {
    int lane = tg_lane(), source = lane ^ lanes;
    return tg_shuffle_value(mask, value, source > (lane | (width - 1)) ? lane : source, file, line);
}

/* ---- votes ------------------------------------------------------------------------------------ */

inline unsigned __ballot_sync(unsigned mask, int predicate, TG_HERE) {
    return tg_ballot(mask, predicate != 0, file, line);
}
inline int __any_sync(unsigned mask, int predicate, TG_HERE) {
    return tg_ballot(mask, predicate != 0, file, line) != 0;
}
inline int __all_sync(unsigned mask, int predicate, TG_HERE) {
    return tg_ballot(mask, predicate == 0, file, line) == 0;
}
inline unsigned __activemask(TG_HERE) { return tg_active_mask(file, line); }

template <class T> inline unsigned __match_any_sync(unsigned mask, T value, TG_HERE) {
    T all[32];
    unsigned here = tg_warp_exchange(mask, &value, sizeof(T), all, file, line), same = 0;
    for (int lane = 0; lane < 32; lane++)
        if (here >> lane & 1 && all[lane] == value) same |= 1u << lane;
    return same;
}

template <class T> inline unsigned __match_all_sync(unsigned mask, T value, int *all_same, TG_HERE) {
    T all[32];
    unsigned here = tg_warp_exchange(mask, &value, sizeof(T), all, file, line);
    *all_same = 1;
    for (int lane = 0; lane < 32; lane++)
        if (here >> lane & 1 && !(all[lane] == value)) *all_same = 0;
    return *all_same ? mask : 0;
}

/* ---- reductions of integers over a warp --------------------------------------------------------- */

template <class T, class F>
inline T tg_warp_reduce(unsigned mask, T value, F combine, const char *file, int line) {
    T all[32], result = value;
    unsigned here = tg_warp_exchange(mask, &value, sizeof(T), all, file, line);
    bool first = true;
    for (int lane = 0; lane < 32; lane++)
        if (here >> lane & 1) {
            result = first ? all[lane] : combine(result, all[lane]);
            first = false;
        }
    return result;
}

#define TG_WARP_REDUCTION(name, type, expression)                                                  \
    inline type __reduce_##name##_sync(unsigned mask, type value, TG_HERE) {                       \
        return tg_warp_reduce(mask, value, [](type a, type b) -> type { return expression; },      \
                              file, line);                                                         \
    }
TG_WARP_REDUCTION(add, int, a + b)
TG_WARP_REDUCTION(add, unsigned, a + b)
TG_WARP_REDUCTION(min, int, a < b ? a : b)
TG_WARP_REDUCTION(min, unsigned, a < b ? a : b)
TG_WARP_REDUCTION(max, int, a < b ? b : a)
TG_WARP_REDUCTION(max, unsigned, a < b ? b : a)
TG_WARP_REDUCTION(and, unsigned, a &b)
TG_WARP_REDUCTION(or, unsigned, a | b)
TG_WARP_REDUCTION(xor, unsigned, a ^ b)
#undef TG_WARP_REDUCTION
