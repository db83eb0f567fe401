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

typedef struct {
    uintptr_t begin, end, low; /* the code of its function, and where it becomes known in it */
    int32_t function, offset, size, unused; /* `offset`: from the frame pointer */
} Variable;
typedef struct {
    uint64_t block, value; /* `block` counts from 1; 0: not seen yet */
} Seen;
typedef struct {
    uint32_t event, variable;
    uint64_t first, value; /* `first`: the thread comes to this variable for the first time */
} Change;
static Variable *variables;
static uint32_t variable_count, function_count;
static uintptr_t *frames; /* of each thread in each function */
static Seen *seen_values; /* of each thread, each variable */
static Change *changes;
static uint32_t change_count, change_room;

static void note_locals(const Event *e);

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
    if (variable_count && kind != CODE) note_locals(e);
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

/* ---- variables of functions ---------------------------------------------------------------------- */

/* A variable of a block keeps its place in the frame behind the block: what was assigned last in it
 * shows where the thread goes on. */
static bool known_at(const Variable *v, uintptr_t pc) { return pc > v->low && pc <= v->end; }

static uintptr_t *frame_of(uint32_t thread, uint32_t function) {
    return &frames[thread * function_count + function];
}

/* Note which variables have another value than at the last event of the thread. */
static void note_locals(const Event *e) {
    const uintptr_t counters[] = {e->place.pc, e->callers[0], e->callers[1], e->callers[2]};
    for (uint32_t k = 0; k < 4; k++) {
        bool any = false;
        for (uint32_t i = 0; i < variable_count; i++) {
            const Variable *v = &variables[i];
            if (!counters[k] || !known_at(v, counters[k])) continue;
            any = true;
            const uintptr_t frame = *frame_of(e->thread, v->function);
            if (!frame) continue;
            uint64_t value = 0;
            memcpy(&value, (const char *)frame + v->offset, v->size);
            Seen *seen = &seen_values[e->thread * variable_count + i];
            if (seen->block == e->block + 1 && seen->value == value) continue;
            const bool first = seen->block != e->block + 1;
            *seen = (Seen){e->block + 1, value};
            if (change_count == change_room) {
                change_room = change_room ? 2 * change_room : 4096;
                changes = realloc(changes, change_room * sizeof *changes);
                if (!changes) abort();
            }
            changes[change_count++] = (Change){(uint32_t)(e - events), i, first, value};
        }
        if (any) return;
    }
}

/* A thread comes to a place in the code, in a function whose frame pointer this is. */
void record_code(uintptr_t pc, uintptr_t frame) {
    if (!on) return;
    const Event *e = record_event(CODE, current_fiber(), (Place){NULL, 0, pc});
    if (!e || !variable_count) return;
    for (uint32_t i = 0; i < variable_count; i++)
        if (pc > variables[i].begin && pc <= variables[i].end)
            *frame_of(e->thread, variables[i].function) = frame;
    note_locals(e);
}

/* After record_begin: the variables whose values are wanted, of so many functions. */
void tg_trace_variables(const Variable *list, uint32_t count, uint32_t functions) {
    variables = malloc((count + 1) * sizeof *variables);
    frames = calloc(MAX_THREADS * (functions + 1), sizeof *frames);
    seen_values = calloc(MAX_THREADS * (count + 1), sizeof *seen_values);
    if (!variables || !frames || !seen_values) abort();
    memcpy(variables, list, count * sizeof *variables);
    variable_count = count;
    function_count = functions;
}

uint32_t tg_trace_changes(const Change **out) {
    *out = changes;
    return change_count;
}

/* How many events there were so far: what is found now belongs to the next one. */
uint32_t record_count(void) { return count; }

Event *record_at(uint32_t number) { return number < count ? &events[number] : NULL; }

void record_begin(uint32_t most) {
    free(events);
    free(variables);
    free(frames);
    free(seen_values);
    free(changes);
    events = NULL;
    variables = NULL;
    frames = NULL;
    seen_values = NULL;
    changes = NULL;
    variable_count = function_count = change_count = change_room = 0;
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
