/* The checker of a launch that is recorded: it does what it always does, and notes what happens. */
#include "check.h"

#include <string.h>

enum { MAX_TRACED = 1024 };
static uint64_t wanted[MAX_TRACED]; /* numbers of the blocks that are recorded */
static uint32_t wanted_count;
static Observer observer;
static AccessWatcher *watch_too; /* who was to know of accesses before us */
static uint32_t first_given; /* number of the event of the first lane of the last meeting */

static void access(const Region *r, uintptr_t address, uint32_t size, uint32_t how, Place place,
                   uint32_t site) {
    if (watch_too) watch_too(r, address, size, how, place, site);
    record_access(r, address, size, how, place);
}

static void block_begins(Worker *w) {
    CHECKER.block_begins(w);
    bool is_wanted = false;
    for (uint32_t i = 0; i < wanted_count; i++) is_wanted |= wanted[i] == w->block_number;
    record_pause(!is_wanted);
}

static void block_ends(void) {
    record_pause(true);
    CHECKER.block_ends();
}

static uint64_t barrier_reached(const Fiber *fiber) {
    record_event(BARRIER, fiber, fiber->barrier);
    return CHECKER.barrier_reached(fiber);
}

static void barrier_passed(Worker *w) {
    Event *e = record_event(RELEASE, current_fiber(), (Place){0});
    if (e) e->epoch--; /* it ends the epoch before */
    CHECKER.barrier_passed(w);
}

/* An event for each lane that meets others: what it gives, and (below) what it takes. */
static void warp_meets(uint32_t warp, uint32_t lanes) {
    static const EventKind KINDS[] = {SYNCWARP, SHUFFLE, VOTE, EXCHANGE};
    first_given = record_count();
    for (uint32_t rest = lanes; rest; rest &= rest - 1) {
        const Fiber *fiber = lane_fiber(warp, first_lane(rest));
        const Meeting *meeting = &fiber->meeting;
        Event *e = record_event(KINDS[meeting->call], fiber, meeting->place);
        if (!e) continue;
        e->mask = meeting->mask;
        if (meeting->call == WARP_SHUFFLE) e->source = meeting->source & (WARP - 1);
        if (meeting->call == WARP_EXCHANGE) {
            e->size = (uint16_t)meeting->bytes;
            memcpy(&e->before, meeting->mine, meeting->bytes < 8 ? meeting->bytes : 8);
        } else {
            e->size = meeting->call == WARP_SHUFFLE ? 8 : meeting->call == WARP_VOTE ? 4 : 0;
            e->before = meeting->value;
        }
    }
}

static void warp_met(uint32_t warp, uint32_t lanes) {
    uint32_t number = first_given;
    for (uint32_t rest = lanes; rest; rest &= rest - 1) {
        const Meeting *meeting = &lane_fiber(warp, first_lane(rest))->meeting;
        Event *e = record_at(number++);
        if (e && meeting->call != WARP_EXCHANGE) e->value[0] = meeting->value;
    }
    CHECKER.warp_met(warp, lanes);
}

/* What the traced build calls when a thread is done. */
void tg_thread_ends(void) { record_event(END, current_fiber(), (Place){0}); }

/* ---- what Python calls -------------------------------------------------------------------------- */

/* After tg_check_begin: record these blocks, at most `limit` events. */
void tg_trace_begin(const uint64_t *blocks, uint32_t count, uint32_t limit, int reversed) {
    wanted_count = count < MAX_TRACED ? count : MAX_TRACED;
    memcpy(wanted, blocks, wanted_count * sizeof *blocks);
    observer = CHECKER;
    observer.block_begins = block_begins;
    observer.block_ends = block_ends;
    observer.barrier_reached = barrier_reached;
    observer.barrier_passed = barrier_passed;
    observer.warp_meets = warp_meets;
    observer.warp_met = warp_met;
    tg_observer = &observer;
    watch_too = tg_watch_access;
    tg_watch_access = access;
    tg_reversed = reversed;
    record_begin(limit);
}

/* After the launch: the events, valid until the next tg_trace_begin. */
uint32_t tg_trace_end(const Event **out, uint64_t *cut) {
    tg_reversed = false;
    return record_end(out, cut);
}

uint32_t tg_event_size(void) { return sizeof(Event); }
uint32_t tg_most_traced_blocks(void) { return MAX_TRACED; }

/* The arrays of the launch, one by one, until tg_check_end; returns 0 after the last. */
int tg_region(uint32_t i, char name[64], uint64_t *low, uint64_t *bytes, uint32_t *element,
              uint32_t *flags) {
    if (i >= tg_region_count) return 0;
    const Region *r = &tg_regions[i];
    memcpy(name, r->name, sizeof r->name);
    *low = r->low;
    *bytes = r->high - r->low;
    *element = r->element;
    *flags = r->flags;
    return 1;
}
