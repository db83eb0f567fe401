/* Races: two threads touch the same bytes, one of them writes, and nothing orders the two.
 *
 * The verdict does not depend on the order in which the fibers happened to run.  What orders
 * accesses, and how it is kept:
 *
 *     __syncthreads     all accesses of the block before it, before all after it: an epoch number
 *     __syncwarp(mask)  the same for the lanes of the mask: vector clocks.  Each lane has a clock
 *                       and remembers how far it has seen the clocks of the other lanes.
 *     fence and flag    __threadfence(), then an atomic or a volatile store, hands on what the
 *                       thread knows ("release"); who reads that address by an atomic or a volatile
 *                       load learns it ("acquire")
 *
 * Shuffles and votes order nothing: CUDA documents no memory ordering for them.
 *
 * Source: Lamport, "Time, clocks, and the ordering of events in a distributed system", 1978;
 * Flanagan, Freund, "FastTrack: efficient and precise dynamic race detection", PLDI 2009.
 */
#include "check.h"

#include <stdlib.h>
#include <string.h>

/* "All of block `block` before epoch `epoch`, and of warp `warp` in that epoch what is in `seen`." */
typedef struct {
    uint32_t block, epoch, warp, seen[WARP];
} Fact;

typedef struct Knowledge {
    uint32_t count, room;
    Fact *facts;
} Knowledge;

/* ---- knowledge -------------------------------------------------------------------------------- */

static void learn_fact(Knowledge *k, const Fact *fact) {
    for (uint32_t i = 0; i < k->count; i++) {
        Fact *old = &k->facts[i];
        if (old->block != fact->block) continue;
        if (old->epoch > fact->epoch) return;
        if (old->epoch < fact->epoch) {
            *old = *fact;
            return;
        }
        if (old->warp != fact->warp) continue;
        for (int lane = 0; lane < WARP; lane++)
            if (fact->seen[lane] > old->seen[lane]) old->seen[lane] = fact->seen[lane];
        return;
    }
    if (k->count == k->room) {
        k->room = k->room ? 2 * k->room : 8;
        k->facts = realloc(k->facts, k->room * sizeof *k->facts);
        if (!k->facts) abort();
    }
    k->facts[k->count++] = *fact;
}

static void learn(Knowledge *k, const Knowledge *other) {
    for (uint32_t i = 0; other && i < other->count; i++) learn_fact(k, &other->facts[i]);
}

static Knowledge *knowledge(Knowledge **place) {
    if (!*place) *place = calloc(1, sizeof **place);
    if (!*place) abort();
    return *place;
}

static void forget(Knowledge **place) {
    if (!*place) return;
    free((*place)->facts);
    free(*place);
    *place = NULL;
}

static bool covers(const Knowledge *k, const Access *a) {
    for (uint32_t i = 0; k && i < k->count; i++) {
        const Fact *fact = &k->facts[i];
        if (fact->block != a->block) continue;
        if (a->epoch < fact->epoch) return true;
        if (a->epoch == fact->epoch && a->thread / WARP == fact->warp &&
            fact->seen[a->thread % WARP] >= a->clock)
            return true;
    }
    return false;
}

/* ---- the clock of a thread ---------------------------------------------------------------------- */

static uint32_t block_label(void) { return (uint32_t)tg_worker->block_number + 1; }

void race_warp_met(uint32_t warp, uint32_t lanes) {
    uint32_t seen[WARP] = {0};
    Knowledge *together = NULL;
    for (uint32_t rest = lanes; rest; rest &= rest - 1) {
        const Fiber *fiber = lane_fiber(warp, first_lane(rest));
        for (int i = 0; i < WARP; i++)
            if (fiber->seen[i] > seen[i]) seen[i] = fiber->seen[i];
        if (fiber->known) learn(knowledge(&together), fiber->known);
    }
    for (uint32_t rest = lanes; rest; rest &= rest - 1)
        seen[first_lane(rest)] = lane_fiber(warp, first_lane(rest))->clock;
    for (uint32_t rest = lanes; rest; rest &= rest - 1) {
        Fiber *fiber = lane_fiber(warp, first_lane(rest));
        memcpy(fiber->seen, seen, sizeof seen);
        fiber->clock++;
        if (together) learn(knowledge(&fiber->known), together);
    }
    forget(&together);
}

void race_barrier_passed(Worker *w) {
    for (uint32_t i = 0; i < w->threads; i++) {
        Fiber *fiber = &w->fibers[i];
        if (fiber->known) learn(knowledge(&w->known), fiber->known);
        forget(&fiber->known);
    }
}

void race_block_begins(Worker *w) {
    forget(&w->known);
    for (uint32_t i = 0; i < w->threads; i++) {
        Fiber *fiber = &w->fibers[i];
        forget(&fiber->known);
        forget(&fiber->fence);
        fiber->clock = 1;
        memset(fiber->seen, 0, sizeof fiber->seen);
    }
}

void race_block_ends(void) { forget(&tg_worker->known); }

/* All blocks of a grid have met: what came before, in any of them, comes before all that follows. */
void race_grid_met(Worker **blocks, uint64_t count) {
    Knowledge *all = NULL;
    for (uint64_t i = 0; i < count; i++) {
        const Fact past = {.block = (uint32_t)blocks[i]->block_number + 1, .epoch = blocks[i]->epoch + 1};
        learn_fact(knowledge(&all), &past);
        learn(all, blocks[i]->known);
    }
    for (uint64_t i = 0; i < count; i++) learn(knowledge(&blocks[i]->known), all);
    forget(&all);
}

/* ---- fences and flags ---------------------------------------------------------------------------- */

typedef struct {
    const void *address;
    Knowledge everywhere, in_block; /* released after a __threadfence, a __threadfence_block */
    uint32_t block;                 /* whose `in_block` it is */
} Flag;

enum { MAX_FLAGS = 1 << 12 };
static Flag *flags[MAX_FLAGS];

/* The flag at an address; made if it is wanted, NULL otherwise or when the table is full. */
static Flag *flag_at(const void *address, bool make) {
    uint32_t i = (uint32_t)((uintptr_t)address * 0x9e3779b97f4a7c15ull >> 52) % MAX_FLAGS;
    for (int tries = 0; tries < MAX_FLAGS; tries++, i = (i + 1) % MAX_FLAGS) {
        if (flags[i] && flags[i]->address == address) return flags[i];
        if (flags[i]) continue;
        if (!make) return NULL;
        flags[i] = calloc(1, sizeof *flags[i]);
        if (!flags[i]) abort();
        flags[i]->address = address;
        return flags[i];
    }
    return NULL;
}

void race_launch_begins(void) {
    for (int i = 0; i < MAX_FLAGS; i++) {
        if (!flags[i]) continue;
        free(flags[i]->everywhere.facts);
        free(flags[i]->in_block.facts);
        free(flags[i]);
        flags[i] = NULL;
    }
}

/* Remember in `fence` all that comes before this moment of the current thread. */
void tg_fence(int scope) {
    atomic_thread_fence(memory_order_seq_cst);
    if (!tg_observer) return;
    Fiber *me = current_fiber();
    forget(&me->fence);
    Knowledge *k = knowledge(&me->fence);
    me->fence_in_block = scope == 0;
    learn(k, tg_worker->known);
    learn(k, me->known);
    Fact own = {.block = block_label(), .epoch = tg_worker->epoch, .warp = me->public.warp};
    memcpy(own.seen, me->seen, sizeof own.seen);
    own.seen[me->public.lane] = me->clock++;
    learn_fact(k, &own);
}

static void release(const void *address) {
    const Fiber *me = current_fiber();
    if (!me->fence) return;
    Flag *flag = flag_at(address, true);
    if (!flag) return;
    if (!me->fence_in_block) learn(&flag->everywhere, me->fence);
    if (flag->block != block_label()) flag->in_block.count = 0;
    flag->block = block_label();
    learn(&flag->in_block, me->fence);
}

static void acquire(const void *address) {
    const Flag *flag = flag_at(address, false);
    if (!flag) return;
    Knowledge *k = knowledge(&current_fiber()->known);
    learn(k, &flag->everywhere);
    if (flag->block == block_label()) learn(k, &flag->in_block);
}

void race_synchronise(const void *address, uint32_t how) {
    if (how & ATOMIC || !(how & WRITE)) acquire(address);
    if (how & (ATOMIC | WRITE)) release(address);
}

/* The marks of tinygraph_check.cuh: a release or an acquire by decree. */
void tg_happens(int after, const void *address) {
    if (!tg_observer) return;
    if (after) {
        acquire(address);
        return;
    }
    Knowledge *kept = current_fiber()->fence;
    current_fiber()->fence = NULL;
    tg_fence(1);
    release(address);
    forget(&current_fiber()->fence);
    current_fiber()->fence = kept;
}

/* ---- races --------------------------------------------------------------------------------------- */

/* Does an earlier access come before everything that the current thread does now? */
static bool comes_before(const Access *a) {
    const Fiber *me = current_fiber();
    const Thread *t = &me->public;
    if (a->block == block_label()) {
        if (a->thread == t->linear || a->epoch != tg_worker->epoch) return true;
        if (a->thread / WARP == t->warp && me->seen[a->thread % WARP] >= a->clock) return true;
    }
    return covers(me->known, a) || covers(tg_worker->known, a);
}

static bool clash(const Access *earlier, uint32_t how) {
    if (!earlier->block) return false;
    if (how & OF_THE_BLOCK && earlier->block != block_label()) return false;
    if (earlier->how & how & SYNCHRONISING) return false;
    return !comes_before(earlier);
}

static bool same_warp(const Access *a, const Access *b) {
    return a->block == b->block && a->thread / WARP == b->thread / WARP;
}

/* Keep two readers of different warps if there are: then every writer meets a foreign one. */
static void note_read(Cell *cell, const Access *now) {
    Access *last = &cell->reads[0], *other = &cell->reads[1];
    if (last->block != now->block || last->thread != now->thread) {
        const bool stale = other->block != now->block || other->epoch != now->epoch;
        if (!same_warp(last, now) || stale) *other = *last;
    }
    *last = *now;
}

/* How far away an access was that is not ordered before the current thread; 0 for one that is. */
static int distance(const Access *a) {
    if (!a->block || comes_before(a)) return 0;
    if (a->block != block_label()) return 3;
    return a->thread / WARP == current_fiber()->public.warp ? 1 : 2;
}

/* Atomics do not order each other: of several that wrote, keep the last and the most distant one,
 * so that a plain access of the last writer meets it. */
static void note_write(Cell *cell, const Access *now) {
    if (distance(&cell->write) >= distance(&cell->atomic)) cell->atomic = cell->write;
    cell->write = *now;
}

/* A thread has looked before its atomicCAS, which expects what it has seen: if another thread has
 * changed it in between, the atomicCAS fails.  So the look is like one by an atomic. */
void race_expected(Cell *cell, uint32_t bits) {
    const Fiber *me = current_fiber();
    for (int i = 0; i < 2; i++) {
        Access *a = &cell->reads[i];
        const bool mine = a->block == block_label() && a->thread == me->public.linear;
        if (mine && a->epoch == tg_worker->epoch && a->how >> VALUE_SHIFT == bits)
            a->how |= SYNCHRONISING, site_swaps(a->site);
    }
}

/* The current thread touches a cell.  Returns whether it races, and with whom in `conflict`. */
bool race_visit(Cell *cell, uint32_t how, uint32_t site, Conflict *conflict) {
    const Fiber *me = current_fiber();
    const Access now = {.block = block_label(), .epoch = tg_worker->epoch, .clock = me->clock,
                        .site = site, .thread = (uint16_t)me->public.linear,
                        .how = (uint16_t)how};
    const bool writes = how & (WRITE | ATOMIC);
    const char *what = NULL;
    const Access *earlier = NULL;
    if (clash(&cell->write, how)) {
        earlier = &cell->write;
        what = cell->write.how & ATOMIC ? "an atomic" : "a write";
    }
    /* A counter of blocks that are done: who counted last, and knows it, may set it to zero.  All
     * that was counted before, after a fence, comes before. */
    const bool counted_last = cell->write.how & ATOMIC && cell->atomic.how & RELEASING;
    if (!what && !counted_last && clash(&cell->atomic, how)) {
        earlier = &cell->atomic;
        what = cell->atomic.how & ATOMIC ? "an atomic" : "a write";
    }
    for (int i = 0; writes && !what && i < 2; i++) {
        if (!clash(&cell->reads[i], how)) continue;
        earlier = &cell->reads[i];
        what = "a read";
    }
    if (what) *conflict = (Conflict){*earlier, what, earlier == &cell->write};
    if (writes)
        note_write(cell, &now);
    else
        note_read(cell, &now);
    return what != NULL;
}
