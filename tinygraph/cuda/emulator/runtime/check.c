/* The checker: sees every access to memory before it happens (hooks.c), so that a thread which would
 * leave its arrays is stopped before it does.
 */
#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uintptr_t module_low, module_high;
static uintptr_t arguments_low, arguments_high; /* of a program's launch: what a kernel is called with */
AccessWatcher *tg_watch_access;

/* A thread is stopped: the launch has failed.  It goes on for a while without this thread, only to
 * count how many others come to the same. */
enum { COUNTED_ACCESSES = 1 << 22 };
static const double COUNTED_SECONDS = 1;
static AccessWatcher *watched_before;
static uint32_t accesses_left;

static void count_down(const Region *r, uintptr_t address, uint32_t size, uint32_t how, Place place,
                       uint32_t site) {
    if (watched_before) watched_before(r, address, size, how, place, site);
    if (!accesses_left--) schedule_abandon();
}

_Noreturn void check_stop(void) {
    Launch *launch = tg_worker->launch;
    if (!findings_count()) {
        launch_fail(FAIL_STOPPED, (Place){0}, "stopped by the checker");
        atomic_store(&launch->stop, false);
        if (launch->timeout > COUNTED_SECONDS) launch->timeout = COUNTED_SECONDS;
        accesses_left = COUNTED_ACCESSES;
        watched_before = tg_watch_access;
        tg_watch_access = count_down;
    }
    block_thread_leaves();
}

/* ---- indices beyond arrays of a known size ----------------------------------------------------------
 *
 * An array in shared or __constant__ memory is judged by the address of the access that follows,
 * which names it.  What is left are arrays of a single thread, whose accesses nobody announces, and
 * arrays inside of a struct.
 */

static struct {
    bool waits;
    Place place;
    Thread *thread;
    const void *type;
    uintptr_t index;
    char text[160];
} beyond, fine; /* `fine`: the last one that its address has judged; the compiler may keep the value
                   of an element in a register, and then no access follows */

/* The access after an index that was beyond its array; `judged` if its address says it all. */
static void beyond_resolve(bool judged) {
    Thread *now = tg_current;
    beyond.waits = false;
    if (judged && beyond.thread == now) {
        fine = beyond;
        return;
    }
    tg_current = beyond.thread;
    tg_observer->found(OUT_OF_BOUNDS, beyond.place, (Place){0}, NULL, "%s", beyond.text);
    if (now == beyond.thread && tg_worker->in_kernel) check_stop();
    tg_current = now;
}

/* The compiler has seen an index that an array of this type does not have. */
void check_beyond(Place place, const void *type, uintptr_t index, const char *text) {
    if (beyond.waits) beyond_resolve(false);
    if (fine.type == type && fine.thread == tg_current && fine.index == index) return;
    beyond.waits = true;
    beyond.place = place, beyond.thread = tg_current, beyond.type = type, beyond.index = index;
    snprintf(beyond.text, sizeof beyond.text, "%s", text);
}

/* ---- one access ---------------------------------------------------------------------------------- */

/* Memory that belongs to no array and may be used all the same. */
static bool is_private(uintptr_t address) {
    const uintptr_t stack = (uintptr_t)current_fiber()->stack;
    if (address - stack < STACK_BYTES) return true; /* local variables */
    if (address >= arguments_low && address < arguments_high) return true;
    if (address < module_low || address >= module_high) return false;
    /* Tables that the compiler made, string literals: anything but the surroundings of a variable. */
    const Region *near = region_near(address);
    const uintptr_t page = 4096;
    return !near || !(near->flags & OF_THE_MODULE) ||
           region_distance(near, address) >= page;
}

/* Arrays of a program lie far from all memory of the host (host/runtime/memory.c). */
static bool is_of_the_host(uintptr_t address, const Region *near) {
    const uintptr_t far = (uintptr_t)1 << 36;
    const char *arena = tg_worker->arena;
    if (!arguments_low || (address >= (uintptr_t)arena && address < (uintptr_t)arena + ARENA_BYTES))
        return false;
    return !near || region_distance(near, address) > far;
}

_Noreturn static void outside(uintptr_t address, uint32_t size, uint32_t how, Place place) {
    const Region *near = region_near(address);
    if (address >= 4096 && is_of_the_host(address, near)) {
        check_found(OUT_OF_BOUNDS, place, (Place){0}, NULL,
                    "%s of %u bytes at %#lx, which is memory of the host: a kernel takes what cudaMalloc "
                    "or cudaMallocManaged gave", access_verb(how), size, (unsigned long)address);
        check_stop();
    }
    if (address < 4096 || !near) {
        check_found(OUT_OF_BOUNDS, place, (Place){0}, NULL,
                    "%s of %u bytes through %s pointer (address %#lx)", access_verb(how), size,
                    address < 4096 ? "a null" : "a wild", (unsigned long)address);
        record_refused(NULL, address, size, how, place);
        check_stop();
    }
    if (near->flags & OPEN_ELEMENT) tg_regions[near - tg_regions].element = size;
    const bool inside = address >= near->low && near->high - address < size;
    const uintptr_t first = inside ? near->high : address; /* that is outside */
    char begin[80] = "";
    if (first != address)
        snprintf(begin, sizeof begin, " from %s[%lu] on", near->name,
                 (unsigned long)((address - near->low) / near->element));
    found_at(OUT_OF_BOUNDS, place, (Place){0}, near, first,
             "%s of %u bytes%s; %s%s has %lu elements", access_verb(how), size, begin,
             near->flags & SHARED_REGION ? "shared " : "", near->name,
             (unsigned long)((near->high - near->low) / near->element));
    record_refused(near, address, size, how, place);
    check_stop();
}

static bool doubtful; /* whether values have been read that may have been gaps */

/* Reads need a value; writes give one. */
static void look_at_state(Region *r, uintptr_t address, uint32_t size, uint32_t how, Place place) {
    uint8_t *state = r->state + (address - r->low);
    bool without_value = false, with_value = false, initial = false;
    for (uint32_t i = 0; i < size; i++) {
        without_value |= !(state[i] & INITIALISED);
        with_value |= state[i] & INITIALISED;
        initial |= !(state[i] & WRITTEN);
        if (how & (WRITE | ATOMIC)) state[i] |= INITIALISED | WRITTEN;
    }
    const bool reads = !(how & WRITE);
    if (how & (WRITE | ATOMIC)) r->writes = true;
    if (reads && initial) r->reads_initial = true;
    enum { WIDEST = 16 }; /* of a vector; more is a struct, and what has no value may be a gap in it */
    if (reads && without_value && with_value && size > WIDEST)
        doubtful = true; /* the launch that follows values will tell whether it is used */
    else if (reads && without_value)
        found_at(UNINITIALIZED, place, (Place){0}, r, address,
                 "%s of %u bytes of %s%s that nobody has written", access_verb(how), size,
                 r->flags & SHARED_REGION ? "shared " : "", r->name);
}

void check_access(const void *pointer, uint32_t size, uint32_t how, Place place) {
    Worker *w = tg_worker;
    const uintptr_t address = (uintptr_t)pointer;
    if (!w || !w->in_kernel) return;
    if (clash_stored) clash_settle();
    if (how & (ATOMIC | VOLATILE)) tg_atomic_pause(); /* it may spin until another thread writes */
    if (address - (uintptr_t)w->fibers < MAX_THREADS * sizeof(Fiber)) return; /* threadIdx etc. */
    Region *r = region_of(address);
    if (beyond.waits)
        beyond_resolve(r ? r->flags & (SHARED_REGION | OF_THE_MODULE) : !is_private(address));
    if (!r) {
        if (is_private(address)) return;
        outside(address, size, how, place);
    }
    if (address + size > r->high) outside(address, size, how, place);
    if (r->flags & (GIVEN_BACK | OPEN_ELEMENT | HEAP) &&
        memory_refuses(r, address, size, access_verb(how), place))
        check_stop();
    if (!(how & UNALIGNED) && address % size) {
        found_at(MISALIGNED, place, (Place){0}, r, address,
                 "%s of %u bytes at byte %lu of %s: not a multiple of %u", access_verb(how), size,
                 (unsigned long)(address - r->low), r->name, size);
        record_refused(r, address, size, how, place);
        check_stop();
    }
    if (r->flags & READ_ONLY && how & (WRITE | ATOMIC)) {
        found_at(READ_ONLY_WRITE, place, (Place){0}, r, address,
                 "%s to %s, which is an input (a pointer to const, or In) or __constant__",
                 access_verb(how), r->name);
        record_refused(r, address, size, how, place);
        check_stop();
    }
    if (how & (ATOMIC | VOLATILE)) {
        race_synchronise(pointer, how);
        const Fiber *me = current_fiber();
        if (how & ATOMIC || !(how & WRITE) || me->fence) how |= SYNCHRONISING;
        if (how & ATOMIC && me->fence && !me->fence_in_block) how |= RELEASING;
        if (me->locks && !(how & ATOMIC) && how & WRITE) locks_give(address);
    }
    const uint32_t site = site_of(place);
    if (how & (ATOMIC | VOLATILE) && !(r->flags & SHARED_REGION))
        waits_look(address);
    if (r->flags & SHARED_REGION) how |= OF_THE_BLOCK;
    look_at_state(r, address, size, how, place);
    clash_look(r, address, size, how, place, site);
    if (tg_watch_access) tg_watch_access(r, address, size, how, place, site);
}

/* ---- a launch under the checker ------------------------------------------------------------------ */

static void endless(Place place) { waits_endless(place, tg_watch_access == count_down); }

static uint64_t barrier_reached(const Fiber *fiber) {
    uint64_t hash = 0;
    for (uint32_t i = 1; i < fiber->depth && i < MAX_FRAMES; i++) /* 0 is our own call */
        hash = (hash ^ fiber->frames[i]) * 0x9e3779b97f4a7c15ull;
    return hash;
}

static void grid_met(Worker **blocks, uint64_t count) {
    race_grid_met(blocks, count);
    locks_grid_met();
}

static void warp_meets(uint32_t warp, uint32_t lanes) { (void)warp, (void)lanes; }

static void warp_met(uint32_t warp, uint32_t lanes) {
    if (lane_fiber(warp, first_lane(lanes))->meeting.call == WARP_BARRIER)
        race_warp_met(warp, lanes); /* other calls order nothing */
}

void check_block_begins(Worker *w) {
    for (uint32_t i = 0; i < tg_region_count; i++)
        if (tg_regions[i].flags & SHARED_REGION &&
            tg_regions[i].low - (uintptr_t)w->arena < ARENA_BYTES)
            memset(tg_regions[i].state, 0, tg_regions[i].high - tg_regions[i].low);
    if (w->launch->shared)
        check_shared_array(&(SharedSlot){.name = "dynamic", .element = 1}, w->arena);
    memset(w->arena, 0xff, w->launch->shared); /* NaN: whoever reads it anyway should notice */
    for (uint32_t i = 0; i < w->threads; i++) {
        w->fibers[i].depth = w->fibers[i].look.found = w->fibers[i].calls = 0;
        locks_thread_begins(&w->fibers[i]);
    }
    race_block_begins(w);
}

static void block_ends(void) {
    if (clash_stored) clash_settle();
    if (tg_worker->abandoned) findings_uncounted();
    if (beyond.waits && !tg_worker->abandoned) beyond_resolve(false);
    if (tg_profiling) profile_barrier();
    race_block_ends();
}

static void barrier_passed(Worker *w) {
    race_barrier_passed(w);
    if (tg_profiling) profile_barrier();
}

/* A lane takes a value that no lane gives: undefined, and no mistake before it is used. */
static uint32_t absent_count;
static uint64_t absent_value; /* what such a lane gets */
static struct { Meeting meeting; Index3 block, thread; uint32_t lane, source; } first_absent;

static void absent(uint32_t warp, uint32_t lane, uint32_t source) {
    const Fiber *fiber = lane_fiber(warp, lane);
    lane_fiber(warp, lane)->meeting.value = absent_value;
    if (absent_count++) return;
    first_absent.meeting = fiber->meeting;
    first_absent.block = fiber->public.block_idx, first_absent.thread = fiber->public.thread_idx;
    first_absent.lane = lane, first_absent.source = source;
}

/* Where nothing follows values, a launch is tried with several of them; then what is left shows
 * whether they were used. */
void tg_check_absent_value(uint64_t value) { absent_value = value; }

void tg_check_absent_used(void) {
    static Fiber someone;
    Thread *now = tg_current;
    someone.public.block_idx = first_absent.block;
    someone.public.thread_idx = first_absent.thread;
    tg_current = &someone.public;
    check_found(WARP_SYNC, first_absent.meeting.place, (Place){0}, NULL,
                "lane %u takes the value of lane %u, which is not in the mask %08x or has left: "
                "what it gets is undefined, and what the launch leaves behind depends on it",
                first_absent.lane, first_absent.source, first_absent.meeting.mask);
    tg_current = now;
}

static void lane_gives(Meeting *mine) { (void)mine; }
static void lane_takes(const Meeting *mine) { (void)mine; }
static void copied(void *to, const void *from, size_t size) { (void)to, (void)from, (void)size; }

/* How many such values there were. */
uint32_t tg_check_absent(void) { return absent_count; }

int tg_check_doubtful(void) { return doubtful; }

const Observer CHECKER = {
    .block_begins = check_block_begins, .block_ends = block_ends, .grid_met = grid_met,
    .barrier_passed = barrier_passed,
    .warp_meets = warp_meets, .warp_met = warp_met, .absent = absent,
    .lane_gives = lane_gives, .lane_takes = lane_takes, .copied = copied,
    .shared_array = check_shared_array, .access = check_access,
    .barrier_reached = barrier_reached, .endless = endless, .found = check_found,
};

static void profile(const Region *r, uintptr_t address, uint32_t size, uint32_t how, Place place,
                    uint32_t site) {
    (void)place;
    profile_access(site, address, size, how, r->flags & SHARED_REGION);
}

void tg_check_begin(int profiling, uintptr_t low, uintptr_t high) {
    tg_observer = &CHECKER;
    tg_profiling = profiling;
    tg_watch_access = profiling ? profile : NULL;
    module_low = low;
    module_high = high;
    absent_count = 0;
    absent_value = 0;
    doubtful = false;
    arguments_low = arguments_high = 0;
    waits_forget();
    locks_forget();
    regions_forget();
    findings_forget();
    beyond.waits = false, fine.type = NULL;
    race_launch_begins();
    clash_stored = 0;
    profile_launch_begins();
}

/* Where the arguments of a program's launch lie: there is no array, and every thread reads them. */
void tg_check_arguments(uintptr_t low, size_t bytes) {
    arguments_low = low;
    arguments_high = low + bytes;
}

/* After a launch that ran to its end: outputs of which elements were left out. */
void tg_check_outputs(void) {
    for (uint32_t i = 0; i < tg_region_count; i++) {
        Region *r = &tg_regions[i];
        const bool only_written = r->writes && !r->reads_initial;
        const bool output = r->flags & MUST_BE_WRITTEN ||
                            (r->flags & OUTPUT_IF_ONLY_WRITTEN && only_written);
        if (!output) continue;
        size_t missing = 0, first = 0;
        for (size_t at = 0; at < r->high - r->low; at += r->element) {
            bool written = true;
            for (size_t k = 0; k < r->element; k++) written &= r->state[at + k] & WRITTEN ? 1 : 0;
            if (!written && !missing++) first = at;
        }
        tg_current = NULL;
        if (missing)
            found_at(UNWRITTEN_OUTPUT, (Place){0}, (Place){NULL, (int)i, 0}, r, r->low + first,
                     "%lu of the %lu elements of the output %s were never written, the first is "
                     "%s[%lu]", (unsigned long)missing,
                     (unsigned long)((r->high - r->low) / r->element), r->name, r->name,
                     (unsigned long)(first / r->element));
    }
}

void tg_check_end(void) {
    regions_forget();
    tg_observer = NULL;
    tg_watch_access = NULL;
    tg_profiling = false;
}
