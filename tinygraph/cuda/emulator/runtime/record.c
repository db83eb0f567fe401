/* The record of a launch: what happened in it, one event after the other.
 *
 * A hook comes before the access that it announces: what a store has written is looked up when the
 * next access or the like comes.  (An atomic enters code of its own before it does its work.)
 */
#include "check.h"

#include <stdlib.h>
#include <string.h>

static Event *events;
static uint32_t count, room, limit;
static uint64_t cut; /* events beyond the limit */
static bool on;      /* a block is executed that is to be recorded */
static int64_t unsettled = -1; /* number of the last store or atomic, if its value is to come, */
static const void *there;      /* and its address */

static void copy(uint64_t *to, const void *from, uint32_t size, uint32_t most) {
    memcpy(to, from, size < most ? size : most);
}

static void settle(void) {
    if (unsettled < 0) return;
    Event *e = &events[unsettled];
    copy(e->value, there, e->size, sizeof e->value);
    unsettled = -1;
}

/* A new event of a thread; NULL where none is to be kept. */
Event *record_event(EventKind kind, const Fiber *fiber, Place place) {
    if (!on) return NULL;
    if (kind != CODE) settle();
    if (count == limit) {
        cut++;
        return NULL;
    }
    if (count == room) {
        room = room ? 2 * room : 1024;
        events = realloc(events, room * sizeof *events);
        if (!events) abort();
    }
    Event *e = &events[count++];
    *e = (Event){.kind = (uint8_t)kind, .thread = fiber->public.linear, .epoch = tg_worker->epoch,
                 .block = tg_worker->block_number, .array = -1, .source = -1, .place = place};
    const uint32_t depth = fiber->depth < MAX_FRAMES ? fiber->depth : MAX_FRAMES;
    for (uint32_t i = 0; i < 3 && i < depth; i++) e->callers[i] = fiber->frames[depth - 1 - i];
    return e;
}

static Event *access_event(const Region *r, uintptr_t address, uint32_t size, uint32_t how,
                           Place place) {
    const EventKind kind = how & ATOMIC ? ATOMIC_UPDATE : how & WRITE ? STORE : LOAD;
    Event *e = record_event(kind, current_fiber(), place);
    if (!e) return NULL;
    e->size = (uint16_t)(size < UINT16_MAX ? size : UINT16_MAX);
    if (!r) return e;
    e->array = (int32_t)(r - tg_regions);
    e->offset = (int64_t)(address - r->low);
    return e;
}

void record_access(const Region *r, uintptr_t address, uint32_t size, uint32_t how, Place place) {
    Event *e = access_event(r, address, size, how, place);
    if (!e) return;
    if (e->kind == LOAD) {
        copy(e->value, (const void *)address, size, sizeof e->value);
        return;
    }
    copy(&e->before, (const void *)address, size, sizeof e->before);
    unsettled = e - events;
    there = (const void *)address;
}

/* An access before which the checker stops the thread. */
void record_refused(const Region *r, uintptr_t address, uint32_t size, uint32_t how, Place place) {
    Event *e = access_event(r, address, size, how, place);
    if (e) e->refused = 1;
}

void record_code(uintptr_t pc) {
    if (on) record_event(CODE, current_fiber(), (Place){NULL, 0, pc});
}

/* How many events there were so far: what is found now belongs to the next one. */
uint32_t record_count(void) { return count; }

Event *record_at(uint32_t number) { return number < count ? &events[number] : NULL; }

void record_begin(uint32_t most) {
    free(events);
    events = NULL;
    unsettled = -1;
    count = room = 0;
    cut = 0;
    limit = most;
}

void record_pause(bool paused) {
    settle();
    on = !paused;
}

uint32_t record_end(const Event **out, uint64_t *left_out) {
    record_pause(true);
    *out = events;
    *left_out = cut;
    return count;
}
