/* How a block executes: the life of its fibers, its barriers, its shared memory.
 *
 *     fresh ----> running ----> left the kernel          a kernel without barriers never switches:
 *                  |    ^                                the next fresh lane takes over the stack
 *         waits at v    | everyone has come
 *     at_block (barrier of the block)   at_warp (barrier, shuffle or vote of the warp)
 */
#include "runtime.h"

#include <string.h>

/* ---- the life of a fiber -------------------------------------------------------------------- */

static void complete_barrier(Worker *w);

static void leave_kernel(Worker *w, Fiber *me) {
    Warp *warp = current_warp();
    copies_drop(me);
    warp->alive &= ~(1u << me->public.lane);
    w->alive--;
    if (warp->at_warp) warp_lane_left(me->public.warp);
    if (w->arrived && w->arrived == w->alive) complete_barrier(w); /* who left does not count */
}

/* What runs on every stack: one CUDA thread after the other, as long as fresh ones are next. */
static void fiber_body(void) {
    Worker *w = tg_worker;
    for (;;) {
        Fiber *me = current_fiber();
        w->launch->entry(w->launch->packed);
        me = current_fiber();
        leave_kernel(w, me);
        Fiber *next = schedule_next(w);
        if (next && !next->stack) { /* it has not started: it takes over this stack */
            next->stack = me->stack;
            me->stack = NULL;
            tg_current = &next->public;
            continue;
        }
        if (!next && w->alive) schedule_deadlock(w);
        /* This stack is free, but we stand on it until the switch: nobody else takes one before. */
        stack_give(w, me->stack);
        me->stack = NULL;
        if (!next) {
            w->in_kernel = false;
            fiber_switch(&me->sp, w->home);
        }
        tg_current = &next->public;
        fiber_switch(&me->sp, next->sp);
    }
}

/* Leave the block for good, but not the launch. */
_Noreturn void block_give_up(void) {
    Worker *w = tg_worker;
    void *nowhere;
    w->abandoned = true;
    w->in_kernel = false;
    atomic_store(&w->launch->stop, false);
    fiber_switch(&nowhere, w->home);
    __builtin_unreachable();
}

/* The thread that runs leaves the kernel from wherever it is; the others go on. */
_Noreturn void block_thread_leaves(void) {
    Worker *w = tg_worker;
    Fiber *me = current_fiber();
    w->in_kernel = false; /* the watchdog does not interrupt what follows */
    leave_kernel(w, me);
    Fiber *next = schedule_next(w);
    if (!next && w->alive) schedule_deadlock(w);
    if (next && !next->stack) { /* not this very stack: we stand on it while it is prepared */
        next->stack = stack_take(w);
        fiber_prepare(next, fiber_body);
    }
    stack_give(w, me->stack);
    me->stack = NULL;
    void *nowhere;
    if (!next) fiber_switch(&nowhere, w->home);
    tg_current = &next->public;
    w->in_kernel = true;
    fiber_switch(&nowhere, next->sp);
    __builtin_unreachable();
}

/* ---- barriers of a block -------------------------------------------------------------------- */

static bool same_barrier(const Fiber *a, const Fiber *b) {
    return a->barrier.line == b->barrier.line && a->barrier_path == b->barrier_path;
}

/* While checking: does every thread of the block wait at the same barrier, reached the same way? */
static void compare_barriers(Worker *w) {
    Thread *arrived = tg_current;
    const Fiber *first = NULL;
    for (uint32_t i = 0; i < w->warp_count; i++)
        for (uint32_t lanes = w->warps[i].at_block; lanes; lanes &= lanes - 1) {
            Fiber *fiber = lane_fiber(i, first_lane(lanes));
            if (!first) first = fiber;
            if (same_barrier(first, fiber)) continue;
            const Index3 other = first->public.thread_idx;
            tg_current = &fiber->public;
            tg_observer->found(BARRIER_DIVERGENCE, fiber->barrier, first->barrier, first,
                        "this thread waits here, thread (%u,%u,%u) at another barrier", other.x,
                        other.y, other.z);
            tg_current = arrived;
            return;
        }
    if (w->alive == w->threads) return;
    uint32_t left = 0; /* the first thread that has left the kernel */
    while (w->warps[left / WARP].alive >> left % WARP & 1) left++;
    const Index3 absent = w->fibers[left].public.thread_idx;
    tg_current = (Thread *)&first->public;
    tg_observer->found(BARRIER_DIVERGENCE | NOTE, first->barrier, (Place){0}, NULL,
                "%u of %u threads wait here, but thread (%u,%u,%u) has left the kernel without "
                "this barrier", w->arrived, w->threads, absent.x, absent.y, absent.z);
    tg_current = arrived;
}

static void release_block(Worker *w) {
    if (tg_observer) compare_barriers(w);
    for (uint32_t i = 0; i < w->warp_count; i++) {
        w->warps[i].ready |= w->warps[i].at_block;
        w->warps[i].at_block = 0;
        schedule_mark(w, i);
    }
    w->arrived = 0;
    w->vote_result = w->votes;
    w->votes = 0;
    w->epoch++;
    if (tg_observer) tg_observer->barrier_passed(w);
}

/* The last thread has come.  A barrier of the grid waits for the other blocks, too. */
static void complete_barrier(Worker *w) {
    if (w->at_grid) {
        w->goes_on = current_fiber();
        w->paused = true;
        w->in_kernel = false;
        fiber_switch(&w->goes_on->sp, w->home); /* until block_go_on */
        w->at_grid = false;
    }
    release_block(w);
}

void tg_barrier(const char *file, int line) {
    Worker *w = tg_worker;
    Fiber *me = current_fiber();
    Warp *warp = current_warp();
    const uint32_t lane = 1u << me->public.lane;
    me->barrier = (Place){file, line, 0};
    if (tg_observer) me->barrier_path = tg_observer->barrier_reached(me);
    warp->at_block |= lane;
    if (++w->arrived == w->alive) { /* the last one: everybody may go on, this one at once */
        complete_barrier(w);
        warp->ready &= ~lane;
        schedule_mark(w, me->public.warp);
        w->warp = me->public.warp;
        return;
    }
    schedule_yield();
}

void tg_grid_barrier(const char *file, int line) {
    if (!tg_worker->launch->together)
        tg_trap("this_grid().sync() in a launch whose blocks do not run together: "
                "cudaLaunchCooperativeKernel", file, line);
    tg_worker->at_grid = true;
    tg_barrier(file, line);
}

int tg_barrier_reduce(int op, int predicate, const char *file, int line) {
    Worker *w = tg_worker;
    w->votes += (op == 1) ? !predicate : !!predicate; /* "all" is "none against" */
    tg_barrier(file, line);
    if (op == 0) return w->vote_result != 0;
    return op == 1 ? w->vote_result == 0 : (int)w->vote_result;
}

/* ---- shared memory --------------------------------------------------------------------------- */

static uint32_t rounded_up(uint32_t n, uint32_t unit) { return (n + unit - 1) / unit * unit; }

/* The memory of a `__shared__` declaration: the same for all threads of the block. */
void *tg_shared_memory(const SharedSlot *slot) {
    Worker *w = tg_worker;
    for (uint32_t i = 0; i < w->slot_count; i++)
        if (w->slots[i].slot == slot) return w->arena + w->slots[i].offset;
    const uint32_t gap = tg_observer ? SHARED_GAP : 0;
    const uint32_t offset = rounded_up(w->arena_used, 128);
    w->shared_bytes = rounded_up(w->shared_bytes, slot->align) + slot->size;
    if (w->slot_count == MAX_SHARED_SLOTS || w->shared_bytes > SHARED_LIMIT) {
        launch_fail(FAIL_SHARED, (Place){slot->file, slot->line, 0},
                    "%u bytes of shared memory with `%s`; a block may have %u", w->shared_bytes,
                    slot->name, (unsigned)SHARED_LIMIT);
        schedule_abandon();
    }
    w->slots[w->slot_count].slot = slot;
    w->slots[w->slot_count++].offset = offset;
    w->arena_used = offset + slot->size + gap;
    if (tg_observer) tg_observer->shared_array(slot, w->arena + offset);
    return w->arena + offset;
}

/* The dynamic part, `extern __shared__`: the declaration gives it a name and an element type. */
void *tg_dynamic_memory(const SharedSlot *slot) {
    if (tg_observer) tg_observer->shared_array(slot, tg_worker->arena);
    return tg_worker->arena;
}

/* ---- one block ------------------------------------------------------------------------------- */

static void prepare(Worker *w, uint64_t number) {
    const Launch *launch = w->launch;
    const Index3 grid = launch->grid;
    const Index3 at = {(uint32_t)(number % grid.x), (uint32_t)(number / grid.x % grid.y),
                       (uint32_t)(number / grid.x / grid.y)};
    w->block_number = number;
    w->alive = launch->threads;
    w->arrived = w->votes = w->epoch = w->busy = w->pauses = 0;
    w->warp = w->first_warp;
    w->abandoned = w->at_grid = w->paused = false;
    for (uint32_t i = 0; i < w->warp_count; i++) {
        const uint32_t lanes = lanes_of_warp(w, i);
        w->warps[i] = (Warp){.fresh = lanes, .alive = lanes};
        w->busy |= 1u << i;
    }
    for (uint32_t i = 0; i < launch->threads; i++) w->fibers[i].public.block_idx = at;
}

/* Run all threads of a block to their end, or to a barrier of the grid.  Have they ended? */
bool block_go_on(Worker *w) {
    w->paused = false;
    tg_current = &w->goes_on->public;
    w->in_kernel = true;
    fiber_switch(&w->home, w->goes_on->sp);
    tg_current = NULL;
    if (w->paused) return false;
    if (w->abandoned) {
        for (uint32_t i = 0; i < w->threads; i++) {
            if (w->fibers[i].stack) stack_give(w, w->fibers[i].stack);
            w->fibers[i].stack = NULL;
            copies_drop(&w->fibers[i]);
        }
    }
    if (tg_observer) tg_observer->block_ends();
    return true;
}

/* Begin a block. */
bool block_run(Worker *w, uint64_t number) {
    w->number = number;
    w->argument = -1;
    prepare(w, number);
    if (tg_observer) tg_observer->block_begins(w);
    Fiber *first = schedule_next(w);
    first->stack = stack_take(w);
    fiber_prepare(first, fiber_body);
    w->body = fiber_body;
    w->goes_on = first;
    return block_go_on(w);
}
