/* Which fiber runs next, and how a kernel is left before its end.
 *
 * A fiber runs until it has to wait, never longer and never shorter.  Then the next one goes on:
 * another lane of the same warp if there is one, otherwise the next warp.
 */
#include "runtime.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

__thread Thread *tg_current;
__thread Worker *tg_worker;
__thread const Observer *tg_observer;
__thread bool tg_reversed;

Thread *tg_self(void) { return tg_current; }

/* ---- a kernel is left before its end ------------------------------------------------------- */

/* Note why the launch failed.  Blocks are handed out in order and run to their end, so the failure
 * of the first block of the grid counts, the same at every launch; but not that a block has waited
 * for one that failed.  The caller abandons the block. */
void launch_fail(FailureKind kind, Place place, const char *format, ...) {
    Worker *w = tg_worker;
    Launch *launch = w->launch;
    Failure *failure = launch->failure;
    w->in_kernel = false; /* the watchdog does not interrupt what follows */
    atomic_store(&launch->stop, true);
    while (atomic_flag_test_and_set(&launch->noting)) {}
    const bool first = failure->kind == FAIL_TIMEOUT || w->number < launch->failed;
    if (failure->kind && (kind == FAIL_TIMEOUT || !first)) {
        atomic_flag_clear(&launch->noting);
        return;
    }
    launch->failed = w->number;
    failure->kind = kind;
    failure->line = place.line;
    failure->pc = place.pc;
    failure->argument = w->argument;
    failure->offset = w->offset;
    snprintf(failure->file, sizeof failure->file, "%s", place.file ? place.file : "");
    if (tg_current) {
        failure->block = tg_current->block_idx;
        failure->thread = tg_current->thread_idx;
    }
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(failure->text, sizeof failure->text, format, arguments);
    va_end(arguments);
    atomic_flag_clear(&launch->noting);
}

void tg_trap(const char *what, const char *file, int line) {
    if (!tg_worker) { /* the host half of a program */
        fprintf(stderr, "%s:%d: %s\n", file, line, what);
        abort();
    }
    launch_fail(FAIL_TRAP, (Place){file, line, 0}, "%s", what);
    schedule_abandon();
}

/* Leave the kernel from wherever we are; all other fibers stay where they are, for ever. */
_Noreturn void schedule_abandon(void) {
    Worker *w = tg_worker;
    void *nowhere;
    w->abandoned = true;
    w->in_kernel = false;
    atomic_store(&w->launch->stop, true);
    fiber_switch(&nowhere, w->home);
    __builtin_unreachable();
}

/* ---- which fiber runs next ------------------------------------------------------------------ */

void schedule_mark(Worker *w, uint32_t warp) {
    const Warp *p = &w->warps[warp];
    if (p->fresh | p->ready)
        w->busy |= 1u << warp;
    else
        w->busy &= ~(1u << warp);
}

/* No other lane of the warp can go on: those that gather at one place are together. */
void schedule_gathered(Worker *w) {
    const uint32_t warp = w->warp;
    Warp *p = &w->warps[warp];
    while (p->gathering) {
        const Meeting *first = &lane_fiber(warp, first_lane(p->gathering))->meeting;
        uint32_t here = 0;
        for (uint32_t rest = p->gathering; rest; rest &= rest - 1) {
            const Meeting *other = &lane_fiber(warp, first_lane(rest))->meeting;
            if (other->place.line == first->place.line && other->place.file == first->place.file)
                here |= 1u << first_lane(rest);
        }
        for (uint32_t rest = here; rest; rest &= rest - 1)
            lane_fiber(warp, first_lane(rest))->meeting.value = here;
        p->gathering &= ~here;
        p->ready |= here;
    }
    schedule_mark(w, warp);
}

static Fiber *take(Worker *w, uint32_t lane) {
    Warp *warp = &w->warps[w->warp];
    warp->ready &= ~(1u << lane);
    warp->fresh &= ~(1u << lane);
    schedule_mark(w, w->warp);
    return lane_fiber(w->warp, lane);
}

/* Take the next fiber that can run off its list; NULL if there is none. */
static Fiber *next_upwards(Worker *w) {
    if (!w->busy) return NULL;
    if (!(w->busy >> w->warp & 1)) { /* the next warp after this one, in a circle */
        uint32_t later = w->busy & ~((2u << w->warp) - 1);
        w->warp = first_lane(later ? later : w->busy);
    }
    const Warp *warp = &w->warps[w->warp];
    return take(w, first_lane(warp->ready ? warp->ready : warp->fresh));
}

/* The same from the last lane of the last warp: of threads that race another one wins. */
static Fiber *next_downwards(Worker *w) {
    if (!w->busy) return NULL;
    if (!(w->busy >> w->warp & 1)) {
        uint32_t earlier = w->busy & ((1u << w->warp) - 1);
        w->warp = last_lane(earlier ? earlier : w->busy);
    }
    const Warp *warp = &w->warps[w->warp];
    return take(w, last_lane(warp->ready ? warp->ready : warp->fresh));
}

void schedule_order(Worker *w, bool reversed) {
    w->next_fiber = reversed ? next_downwards : next_upwards;
    w->first_warp = reversed ? w->warp_count - 1 : 0;
}

static void go_on(Fiber *from, Fiber *to) {
    if (from == to) return;
    if (!to->stack) {
        to->stack = stack_take(tg_worker);
        fiber_prepare(to, tg_worker->body);
    }
    tg_current = &to->public;
    fiber_switch(&from->sp, to->sp);
}

/* Nobody can run, but some wait: lanes of a warp for others of their mask that wait elsewhere. */
_Noreturn void schedule_deadlock(Worker *w) {
    uint32_t i = 0;
    while (!w->warps[i].at_warp) i++;
    const Warp *warp = &w->warps[i];
    const Fiber *fiber = lane_fiber(i, first_lane(warp->at_warp));
    const Place place = fiber->meeting.place;
    const uint32_t absent = fiber->meeting.mask & warp->alive & ~warp->at_warp;
    tg_current = &lane_fiber(i, first_lane(warp->at_warp))->public;
    if (tg_observer) {
        const Place elsewhere = absent ? lane_fiber(i, first_lane(absent))->barrier : (Place){0};
        if (absent)
            tg_observer->found(WARP_SYNC, place, elsewhere, NULL,
                        "the mask %08x names lanes %08x, which do not come to this call: they "
                        "wait at a barrier", fiber->meeting.mask, absent);
        else
            tg_observer->found(WARP_SYNC, place, elsewhere, NULL,
                        "lanes that wait for each other name different masks, one is %08x",
                        fiber->meeting.mask);
        tg_observer->found(DEADLOCK, place, elsewhere, NULL,
                    "lanes %08x of warp %u wait here for ever, and no other thread of the block "
                    "can go on", warp->at_warp, i);
    }
    launch_fail(FAIL_DEADLOCK, place,
                "the lanes of a mask never meet: some wait elsewhere, or with another mask");
    schedule_abandon();
}

/* Let another fiber run.  The caller has already said where it waits. */
void schedule_yield(void) {
    Fiber *next = schedule_next(tg_worker);
    if (!next) schedule_deadlock(tg_worker);
    go_on(current_fiber(), next);
}

void schedule_release(uint32_t warp, uint32_t lanes) {
    Warp *p = &tg_worker->warps[warp];
    p->at_warp &= ~lanes;
    p->ready |= lanes;
    schedule_mark(tg_worker, warp);
}

/* A thread that waits for another by reading again and again gives way. */
void tg_nap(void) {
    Worker *w = tg_worker;
    Fiber *me = current_fiber();
    Fiber *next = schedule_next(w);
    if (!next) return;
    current_warp()->ready |= 1u << me->public.lane;
    schedule_mark(w, me->public.warp);
    if (next->public.warp == me->public.warp && w->busy & ~(1u << w->warp)) {
        /* lanes of one warp may all spin: let another warp have a turn as well */
        w->warps[next->public.warp].ready |= 1u << next->public.lane;
        schedule_mark(w, next->public.warp);
        uint32_t others = w->busy & ~(1u << w->warp);
        uint32_t later = others & ~((2u << w->warp) - 1);
        w->warp = first_lane(later ? later : others);
        next = schedule_next(w);
    }
    go_on(me, next);
}

void tg_atomic_pause(void) {
    enum { EVERY = 256 };
    if (++tg_worker->pauses % EVERY == 0) tg_nap();
}
