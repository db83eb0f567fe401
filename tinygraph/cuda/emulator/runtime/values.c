/* Which values are undefined, and where one is used.
 *
 * A value is undefined that a lane takes from one that is absent, or that a local variable holds
 * before anything is assigned to it.  To receive one, to add to it, to throw it away is no mistake;
 * to branch on it, to go to an address that it decides, to store it as a result is one.
 *
 * A kernel that is to be followed is compiled with -fsanitize=kernel-memory (of clang alone), which
 * makes the compiler keep a shadow of each value: a bit for a bit, 1 if that is undefined.  Shadows
 * of memory lie where __msan_metadata_ptr_for_load and _store say, shadows of arguments and results
 * of calls in a Context for each thread.  Beside a shadow lies the origin of what is undefined, a
 * number that is ours to choose.  Source: LLVM's MemorySanitizer.cpp (the kernel's interface);
 * Stepanov, Serebryany, "MemorySanitizer: fast detector of uninitialized memory use in C++", 2015.
 */
#define _GNU_SOURCE
#include "check.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

/* What the compiler expects at the place that __msan_get_context_state returns. */
enum { SLOTS = 800 };
typedef struct {
    uint8_t arguments[SLOTS], result[SLOTS], more_arguments[SLOTS], more_origins[SLOTS];
    uint64_t more_size;
    uint32_t argument_origins[SLOTS / 4];
    uint32_t result_origin;
} Context;
static Context *contexts; /* one for each thread of a block, and one for nobody */

typedef struct { uint8_t *shadow; uint32_t *origin; } Shadow;

static Context *context(void) {
    return &contexts[tg_current ? tg_current->linear : MAX_THREADS];
}

/* ---- origins: where something undefined came from -------------------------------------------------- */

typedef struct {
    const char *variable; /* a local one; NULL: a lane's value that was absent */
    Place place;          /* of the call that took it */
    uint32_t lane, source, mask;
} Origin;
enum { MAX_ORIGINS = 1 << 12, ORIGIN_SLOTS = 2 * MAX_ORIGINS };
static Origin origins[MAX_ORIGINS];
static uint32_t origin_count;
static uint16_t origin_numbers[ORIGIN_SLOTS]; /* by their hash; 0: free */

/* The number of an origin; those that find no room have number 0.  Asked for at each declaration of
 * a local variable. */
static uint32_t origin_of(Origin new) {
    const uintptr_t key = (uintptr_t)new.variable ^ (uintptr_t)new.place.file ^ new.place.line;
    uint32_t slot = (uint32_t)((key * 0x9e3779b97f4a7c15u) >> 51) % ORIGIN_SLOTS;
    for (uint32_t i; (i = origin_numbers[slot]); slot = (slot + 1) % ORIGIN_SLOTS)
        if (origins[i].variable == new.variable && origins[i].place.line == new.place.line &&
            origins[i].place.file == new.place.file)
            return i;
    if (origin_count == MAX_ORIGINS) return 0;
    origins[origin_count] = new;
    origin_numbers[slot] = (uint16_t)origin_count;
    return origin_count++;
}

/* ---- the shadow of an address ------------------------------------------------------------------------ */

enum { MAX_CHUNKS = 64, DUMMY_BYTES = 1 << 16 };
static struct { uintptr_t low, high; uint8_t *shadow, *origin; } stacks[MAX_CHUNKS];
static uint32_t stack_count, last_stack;
static uint8_t nothing[DUMMY_BYTES], anything[DUMMY_BYTES]; /* loaded from: zeros; stored to */

static Shadow on_a_stack(uintptr_t address) {
    for (uint32_t k = 0; k < stack_count; k++) {
        const uint32_t i = (last_stack + k) % stack_count;
        if (address < stacks[i].low || address >= stacks[i].high) continue;
        last_stack = i;
        const uintptr_t at = address - stacks[i].low;
        return (Shadow){stacks[i].shadow + at, (uint32_t *)(stacks[i].origin + (at & ~3ul))};
    }
    const Worker *w = tg_worker;
    for (uint32_t i = 0; w && i < w->chunk_count && stack_count < MAX_CHUNKS; i++) {
        const uintptr_t low = (uintptr_t)w->chunks[i].low, high = (uintptr_t)w->chunks[i].high;
        if (address < low || address >= high) continue;
        last_stack = stack_count;
        stacks[stack_count].low = low, stacks[stack_count].high = high;
        stacks[stack_count].shadow = region_zeros(high - low);
        stacks[stack_count++].origin = region_zeros(high - low);
        return on_a_stack(address);
    }
    return (Shadow){NULL, NULL};
}

static Shadow in_region(const Region *r, uintptr_t address) {
    const uintptr_t at = address - r->low;
    return (Shadow){r->shadow + at, (uint32_t *)(r->origin + (at & ~3ul))};
}

/* On the stack of the current thread, where most of them lie; NULL for another address. */
static struct { const char *stack; Shadow at; } own;

static inline Shadow on_own_stack(uintptr_t address) {
    const Fiber *me = current_fiber();
    const uintptr_t at = me ? address - (uintptr_t)me->stack : STACK_BYTES;
    if (at >= STACK_BYTES) return (Shadow){NULL, NULL};
    if (me->stack != own.stack) {
        own.stack = me->stack;
        own.at = on_a_stack((uintptr_t)me->stack);
    }
    return (Shadow){own.at.shadow + at, own.at.origin + at / 4};
}

static Shadow shadow_of(uintptr_t address) {
    const Shadow mine = on_own_stack(address);
    if (mine.shadow) return mine;
    const Region *r = region_of(address);
    return r && r->shadow ? in_region(r, address) : on_a_stack(address);
}

/* Say that bytes hold values, or hold none. */
static void set(const void *address, size_t size, uint8_t shadow, uint32_t origin) {
    const Shadow s = shadow_of((uintptr_t)address);
    if (!s.shadow) return;
    memset(s.shadow, shadow, size);
    for (size_t i = 0; shadow && i < ((uintptr_t)address % 4 + size + 3) / 4; i++)
        s.origin[i] = origin;
}

static void copy(void *to, const void *from, size_t size) {
    const Shadow a = shadow_of((uintptr_t)to), b = shadow_of((uintptr_t)from);
    if (!a.shadow) return;
    if (!b.shadow) {
        memset(a.shadow, 0, size);
        return;
    }
    memmove(a.shadow, b.shadow, size);
    memmove(a.origin, b.origin, (size + 3) / 4 * 4);
}

static bool any(const uint8_t *shadow, size_t size) {
    for (size_t i = 0; i < size; i++)
        if (shadow[i]) return true;
    return false;
}

/* ---- a use ----------------------------------------------------------------------------------------------- */

/* The current thread uses what is undefined, as an element of `r` if that is not NULL. */
static void used(uint32_t number, Place place, const Region *r, uintptr_t address,
                 const char *how) {
    if (!tg_worker || !tg_worker->in_kernel) return;
    const Origin *o = &origins[number < origin_count ? number : 0];
    char text[320];
    FindingKind kind = UNINITIALIZED;
    Place other = {0};
    if (o->variable) {
        snprintf(text, sizeof text, "the local variable %s holds no value here, or only in part, "
                 "and %s", o->variable, how);
    } else if (o->place.line) {
        kind = WARP_SYNC, other = place, place = o->place;
        snprintf(text, sizeof text, "lane %u takes the value of lane %u, which is not in the mask "
                 "%08x or has left: what it gets is undefined, and %s", o->lane, o->source,
                 o->mask, how);
    } else
        snprintf(text, sizeof text, "a value that nobody has set %s", how);
    if (r)
        found_at(kind, place, other, r, address, "%s", text);
    else
        check_found(kind, place, other, NULL, "%s", text);
}

/* A store into an array: the compiler writes the shadow after it has asked where it lies, so that it
 * is looked at when the next question comes. */
static struct {
    Shadow at; /* NULL: none */
    uint32_t size;
    const Region *region;
    uintptr_t address;
    Place place;
    Thread *thread;
} stored;

static void look_at_stored(void) {
    uint8_t *shadow = stored.at.shadow;
    stored.at.shadow = NULL;
    if (!any(shadow, stored.size)) return;
    memset(shadow, 0, stored.size); /* it is told once */
    Thread *now = tg_current;
    tg_current = stored.thread;
    used(*stored.at.origin, stored.place, stored.region, stored.address, "is stored as a result");
    tg_current = now;
}

/* Another thread must not ask now: the shadow may not be written yet. */
static bool amid_a_store(void) { return stored.at.shadow; }

static inline void settle(void) {
    if (stored.at.shadow) look_at_stored();
}

/* ---- what the compiler calls --------------------------------------------------------------------------- */

#define CALLER ((Place){NULL, 0, (uintptr_t)__builtin_return_address(0)})

static Shadow load(uintptr_t address) {
    settle();
    const Shadow s = shadow_of(address);
    return s.shadow ? s : (Shadow){nothing, (uint32_t *)nothing};
}

static Shadow store(uintptr_t address, uint32_t size, Place place) {
    settle();
    const Shadow mine = on_own_stack(address);
    if (mine.shadow) return mine;
    const Region *r = region_of(address);
    const Shadow s = r && r->shadow ? in_region(r, address) : on_a_stack(address);
    if (!s.shadow) return (Shadow){anything, (uint32_t *)anything};
    if (r && !(r->flags & SHARED_REGION) && tg_current) {
        stored.at = s, stored.size = size, stored.region = r, stored.address = address;
        stored.place = place, stored.thread = tg_current;
    }
    return s;
}

#define METADATA(n)                                                                                \
    Shadow __msan_metadata_ptr_for_load_##n(uintptr_t p) { return load(p); }                       \
    Shadow __msan_metadata_ptr_for_store_##n(uintptr_t p) { return store(p, n, CALLER); }
METADATA(1) METADATA(2) METADATA(4) METADATA(8)
Shadow __msan_metadata_ptr_for_load_n(uintptr_t p, size_t n) { return (void)n, load(p); }
Shadow __msan_metadata_ptr_for_store_n(uintptr_t p, size_t n) {
    return store(p, (uint32_t)n, CALLER);
}

Context *__msan_get_context_state(void) {
    settle();
    return context();
}

void __msan_warning(uint32_t origin) {
    used(origin, CALLER, NULL, 0, "decides a branch or an address");
}

/* A parameter lies in a variable of its own, `n.addr`, and has its value at once. */
static bool is_parameter(const char *name) {
    const size_t length = strlen(name);
    return length > 5 && !memcmp(name + length - 5, ".addr", 5);
}

void __msan_poison_alloca(void *address, size_t size, const char *name) {
    if (is_parameter(name)) return;
    set(address, size, 0xff, origin_of((Origin){.variable = name}));
}
void __msan_unpoison_alloca(void *address, size_t size) { set(address, size, 0, 0); }
void __msan_instrument_asm_store(void *address, size_t size) { set(address, size, 0, 0); }
uint32_t __msan_chain_origin(uint32_t origin) { return origin; }

void *__msan_memcpy(void *to, const void *from, size_t size) {
    settle();
    copy(to, from, size);
    return memcpy(to, from, size);
}
void *__msan_memmove(void *to, const void *from, size_t size) {
    settle();
    copy(to, from, size);
    return memmove(to, from, size);
}
void *__msan_memset(void *to, int value, size_t size) {
    settle();
    set(to, size, 0, 0);
    return memset(to, value, size);
}

/* ---- what the headers and the rest of the run time call -------------------------------------------- */

/* A value, in a variable, is stored by an atomic or handed to something that we do not follow. */
void tg_use(const void *value, unsigned size, const char *file, int line) {
    const Shadow s = shadow_of((uintptr_t)value);
    if (s.shadow && any(s.shadow, size))
        used(*s.origin, (Place){file, line, 0}, NULL, 0, "goes into an atomic");
}

/* Shuffles and votes take the value, or the predicate, as their second argument. */
static void lane_gives(Meeting *mine) {
    memcpy(&mine->undefined, context()->arguments + 8, sizeof mine->undefined);
    mine->origin = context()->argument_origins[2];
}

static void lane_takes(const Meeting *mine) {
    memcpy(context()->result, &mine->undefined, sizeof mine->undefined);
    context()->result_origin = mine->origin;
}

static void absent(uint32_t warp, uint32_t lane, uint32_t source) {
    Meeting *mine = &lane_fiber(warp, lane)->meeting;
    mine->undefined = ~0ull;
    mine->origin = origin_of((Origin){NULL, mine->place, lane, source, mine->mask});
}

/* An access of the run time or of an atomic. */
static void access(const void *address, uint32_t size, uint32_t how, Place place) {
    (void)place;
    settle();
    if (how & ATOMIC) tg_atomic_pause();
    if (how & WRITE) set(address, size, 0, 0);
}

static void block_begins(Worker *w) {
    check_block_begins(w);
    for (uint32_t i = 0; i < tg_region_count; i++)
        if (tg_regions[i].flags & SHARED_REGION && tg_regions[i].shadow)
            memset(tg_regions[i].shadow, 0xff, tg_regions[i].high - tg_regions[i].low);
    for (uint32_t i = 0; i < w->threads; i++) memset(&contexts[i], 0, sizeof contexts[i]);
}

static void block_ends(void) { settle(); }
static void barrier_passed(Worker *w) { (void)w; }
static void warp_met(uint32_t warp, uint32_t lanes) { (void)warp, (void)lanes; }

void tg_follow_begin(uintptr_t low, uintptr_t high) {
    static Observer follower;
    tg_check_begin(0, low, high);
    follower = *tg_observer;
    follower.block_begins = block_begins;
    follower.block_ends = block_ends;
    follower.barrier_passed = barrier_passed;
    follower.warp_met = warp_met;
    follower.access = access;
    follower.amid_a_store = amid_a_store;
    follower.absent = absent;
    follower.lane_gives = lane_gives;
    follower.lane_takes = lane_takes;
    follower.copied = copy;
    tg_observer = &follower;
    tg_following = true;
    contexts = region_zeros((MAX_THREADS + 1) * sizeof *contexts);
    origin_count = 1;
    memset(origin_numbers, 0, sizeof origin_numbers);
    stored.at.shadow = NULL;
}

void tg_follow_end(void) {
    for (uint32_t i = 0; i < stack_count; i++) {
        munmap(stacks[i].shadow, stacks[i].high - stacks[i].low + 1);
        munmap(stacks[i].origin, stacks[i].high - stacks[i].low + 1);
    }
    stack_count = last_stack = 0;
    own.stack = NULL;
    munmap(contexts, (MAX_THREADS + 1) * sizeof *contexts + 1);
    tg_following = false;
    tg_check_end();
}
