/* The checker: sees every access to memory before it happens (hooks.c), so that a thread which would
 * leave its arrays is stopped before it does.
 *
 *     region    an array: an argument, a shared array, a __constant__ or __device__ variable
 *     state     for each byte of it: has it a value? has this launch written it?
 *     cell      for each word of it: who wrote it last, who read it (race.c)
 *     site      a place in the source that touches memory
 */
#define _GNU_SOURCE
#include "runtime.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

__thread bool tg_checking;
static uintptr_t module_low, module_high;
void tg_atomic_pause(void);

/* ---- sites ------------------------------------------------------------------------------------ */

enum { MAX_SITES = 1 << 14 };
static Place sites[MAX_SITES];
static uint32_t last_site;

/* The number of a place.  When the table is full, places that come late share number 0. */
static uint32_t site_of(Place place) {
    uint64_t key = place.pc ? place.pc : (uintptr_t)place.file * 31u + (uint32_t)place.line;
    uint32_t i = (uint32_t)(key * 0x9e3779b97f4a7c15ull >> 50) % MAX_SITES;
    for (uint32_t tries = 0; tries < 64; tries++, i = (i + 1) % MAX_SITES) {
        if (i == 0) continue;
        Place *site = &sites[i];
        if (site->pc == place.pc && site->file == place.file && site->line == place.line) return i;
        if (!site->pc && !site->file) {
            *site = place;
            return i;
        }
    }
    return 0;
}

Place tg_site(uint32_t number) { return sites[number % MAX_SITES]; }

/* ---- regions ------------------------------------------------------------------------------------ */

enum { INITIALISED = 1, WRITTEN = 2 };
enum { SHARED_REGION = 1, READ_ONLY = 2, MUST_BE_WRITTEN = 4, OUTPUT_IF_ONLY_WRITTEN = 8,
       OF_THE_MODULE = 16 /* a __constant__ or __device__ variable */ };

typedef struct {
    uintptr_t low, high;
    char name[64];
    uint32_t element, flags;
    bool reads_initial, writes, atomics;
    uint8_t *state;
    Cell *cells;  /* one for each word of four bytes */
    Cell **parts; /* for words that were touched in parts: four cells, one a byte */
} Region;

enum { MAX_REGIONS = 256 };
static Region regions[MAX_REGIONS];
static uint32_t region_count, last_region;

static void *zeros(size_t bytes) { /* pages that cost nothing until they are touched */
    void *memory = mmap(NULL, bytes + 1, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) abort();
    return memory;
}

static size_t words(const Region *r) { return (r->high - r->low + 3) / 4; }

static Region *region_add(uintptr_t low, size_t bytes, const char *name, uint32_t element,
                          uint32_t flags, bool initialised) {
    if (region_count == MAX_REGIONS) return NULL;
    Region *r = &regions[region_count++];
    *r = (Region){.low = low, .high = low + bytes, .element = element ? element : 1,
                  .flags = flags};
    snprintf(r->name, sizeof r->name, "%s", name);
    r->state = zeros(bytes);
    r->cells = zeros(words(r) * sizeof(Cell));
    if (initialised) memset(r->state, INITIALISED, bytes);
    return r;
}

static void region_free(Region *r) {
    if (r->parts) {
        for (size_t i = 0; i < words(r); i++) free(r->parts[i]);
        munmap(r->parts, words(r) * sizeof *r->parts + 1);
    }
    munmap(r->state, r->high - r->low + 1);
    munmap(r->cells, words(r) * sizeof(Cell) + 1);
}

static Region *region_of(uintptr_t address) {
    for (uint32_t k = 0; k < region_count; k++) {
        uint32_t i = last_region + k;
        if (i >= region_count) i -= region_count;
        if (address >= regions[i].low && address < regions[i].high) {
            last_region = i;
            return &regions[i];
        }
    }
    return NULL;
}

/* The array that an address outside of all arrays was meant for: the nearest one. */
static const Region *region_near(uintptr_t address) {
    const char *arena = tg_worker->arena;
    const bool shared = address >= (uintptr_t)arena && address < (uintptr_t)arena + ARENA_BYTES;
    const Region *best = NULL;
    uintptr_t least = UINTPTR_MAX;
    for (uint32_t i = 0; i < region_count; i++) {
        const Region *r = &regions[i];
        if (shared != (bool)(r->flags & SHARED_REGION)) continue;
        const uintptr_t distance = address < r->low ? r->low - address : address - r->high;
        if (distance < least) least = distance, best = r;
    }
    return best;
}

void check_shared_array(const SharedSlot *slot, char *address) {
    for (uint32_t i = 0; i < region_count; i++) {
        Region *r = &regions[i];
        if (!(r->flags & SHARED_REGION) || r->low != (uintptr_t)address) continue;
        snprintf(r->name, sizeof r->name, "%s", slot->name); /* `extern __shared__` names it late */
        r->element = slot->element;
        return;
    }
    const bool dynamic = address == tg_worker->arena;
    const size_t bytes = dynamic ? tg_worker->launch->shared : slot->size;
    region_add((uintptr_t)address, bytes, slot->name, slot->element, SHARED_REGION, false);
}

/* ---- findings ----------------------------------------------------------------------------------- */

enum { MAX_FINDINGS = 64, PATH = 8 };

typedef struct {
    int32_t kind, has_index;
    Place place, other;
    uintptr_t path[PATH], other_path[PATH]; /* call sites, innermost first, for barriers */
    int64_t index;
    Index3 block, thread;
    char array[64];
    char text[400];
} Found;

static Found findings[MAX_FINDINGS];
static uint32_t finding_count;

static bool same_place(Place a, Place b) {
    return a.pc == b.pc && a.line == b.line && a.file == b.file;
}

static bool known_already(FindingKind kind, Place place, Place other) {
    for (uint32_t i = 0; i < finding_count; i++) {
        const Found *f = &findings[i];
        if (f->kind != (int)kind) continue;
        if (same_place(f->place, place) && same_place(f->other, other)) return true;
        if (same_place(f->place, other) && same_place(f->other, place)) return true;
    }
    return false;
}

static void copy_path(const Fiber *fiber, uintptr_t *path) {
    uint32_t depth = fiber->depth < MAX_FRAMES ? fiber->depth : MAX_FRAMES;
    for (uint32_t i = 0; i < PATH && i < depth; i++) path[i] = fiber->frames[depth - 1 - i];
}

static Found *found(FindingKind kind, Place place, Place other) {
    if (finding_count == MAX_FINDINGS || known_already(kind, place, other)) return NULL;
    Found *f = &findings[finding_count++];
    *f = (Found){.kind = kind, .place = place, .other = other};
    if (tg_current) {
        f->block = tg_current->block_idx;
        f->thread = tg_current->thread_idx;
        copy_path(current_fiber(), f->path);
    }
    return f;
}

void check_found(FindingKind kind, Place place, Place other_place, const Fiber *other,
                 const char *format, ...) {
    Found *f = found(kind, place, other_place);
    if (!f) return;
    if (other) copy_path(other, f->other_path);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(f->text, sizeof f->text, format, arguments);
    va_end(arguments);
}

/* A finding about an element of an array. */
__attribute__((format(printf, 6, 7))) static void
found_at(FindingKind kind, Place place, Place other, const Region *r, uintptr_t address,
         const char *format, ...) {
    Found *f = found(kind, place, other);
    if (!f) return;
    const int64_t offset = (int64_t)(address - r->low), element = r->element;
    f->has_index = 1;
    f->index = offset >= 0 ? offset / element : -((-offset + element - 1) / element);
    snprintf(f->array, sizeof f->array, "%s", r->name);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(f->text, sizeof f->text, format, arguments);
    va_end(arguments);
}

void check_endless(Place place) {
    const Worker *w = tg_worker;
    const Place last = sites[last_site]; /* for when it was in the run time, or in a header */
    uint32_t waiting = 0;
    for (uint32_t i = 0; i < w->warp_count; i++)
        waiting += (uint32_t)__builtin_popcount(w->warps[i].at_block | w->warps[i].at_warp);
    if (waiting)
        check_found(DEADLOCK, place, last, NULL,
                    "this thread goes round and round, and %u threads of the block wait at a "
                    "barrier or in a call of their warp; given up after %g seconds", waiting,
                    w->launch->timeout);
    else
        check_found(TIMEOUT, place, last, NULL, "the block is not done after %g seconds of "
                    "computing", w->launch->timeout);
}

_Noreturn static void stop(void) {
    launch_fail(FAIL_STOPPED, (Place){0}, "stopped by the checker");
    block_abandon();
}

static const char *verb(uint32_t how) {
    return how & ATOMIC ? "atomic" : how & WRITE ? "write" : "read";
}

/* ---- one access ---------------------------------------------------------------------------------- */

/* Memory that belongs to no array and may be used all the same. */
static bool is_private(uintptr_t address) {
    const uintptr_t stack = (uintptr_t)current_fiber()->stack;
    if (address - stack < STACK_BYTES) return true; /* local variables */
    if (address < module_low || address >= module_high) return false;
    /* Tables that the compiler made, string literals: anything but the surroundings of a variable. */
    const Region *near = region_near(address);
    const uintptr_t page = 4096;
    return !near || !(near->flags & OF_THE_MODULE) ||
           (address < near->low ? near->low - address : address - near->high) >= page;
}

_Noreturn static void outside(uintptr_t address, uint32_t size, uint32_t how, Place place) {
    const Region *near = region_near(address);
    if (address < 4096 || !near) {
        check_found(OUT_OF_BOUNDS, place, (Place){0}, NULL,
                    "%s of %u bytes through %s pointer (address %#lx)", verb(how), size,
                    address < 4096 ? "a null" : "a wild", (unsigned long)address);
        stop();
    }
    found_at(OUT_OF_BOUNDS, place, (Place){0}, near, address, "%s of %u bytes; %s%s has %lu elements",
             verb(how), size, near->flags & SHARED_REGION ? "shared " : "", near->name,
             (unsigned long)((near->high - near->low) / near->element));
    stop();
}

/* Reads need a value; writes give one. */
static void look_at_state(Region *r, uintptr_t address, uint32_t size, uint32_t how, Place place) {
    uint8_t *state = r->state + (address - r->low);
    bool without_value = false, initial = false;
    for (uint32_t i = 0; i < size; i++) {
        without_value |= !(state[i] & INITIALISED);
        initial |= !(state[i] & WRITTEN);
        if (how & (WRITE | ATOMIC)) state[i] |= INITIALISED | WRITTEN;
    }
    const bool reads = !(how & WRITE);
    if (how & (WRITE | ATOMIC)) r->writes = true;
    if (reads && initial) r->reads_initial = true;
    if (reads && without_value)
        found_at(UNINITIALIZED, place, (Place){0}, r, address,
                 "%s of %u bytes of %s%s that nobody has written", verb(how), size,
                 r->flags & SHARED_REGION ? "shared " : "", r->name);
}

static Place site_place(uint32_t site) { return sites[site]; }

static void tell_race(const Region *r, uintptr_t address, uint32_t how, Place place, Conflict c) {
    const Worker *w = tg_worker;
    const Index3 b = w->launch->block, g = w->launch->grid;
    const uint32_t t = c.earlier.thread, n = c.earlier.block - 1;
    const bool same_block = n == w->block_number;
    found_at(RACE, place, site_place(c.earlier.site), r, address,
             "%s (%s after %s): thread (%u,%u,%u) of %s (%u,%u,%u) touched it, and nothing orders "
             "the two", r->flags & SHARED_REGION ? "race on shared memory" : "race", verb(how),
             c.what, t % b.x, t / b.x % b.y, t / b.x / b.y, same_block ? "the same block" : "block",
             n % g.x, n / g.x % g.y, n / g.x / g.y);
}

/* Visit the cells of all words that an access touches; words touched in parts have one a byte. */
static void look_for_races(Region *r, uintptr_t address, uint32_t size, uint32_t how, Place place,
                           uint32_t site) {
    const size_t first = address - r->low, end = first + size;
    Conflict conflict = {{0}, NULL};
    for (size_t word = first / 4; word * 4 < end; word++) {
        const size_t from = word * 4 < first ? first - word * 4 : 0;
        const size_t to = end - word * 4 < 4 ? end - word * 4 : 4;
        const bool whole = from == 0 && to == 4;
        Cell *parts = r->parts ? r->parts[word] : NULL;
        if (whole && !parts) {
            if (race_visit(&r->cells[word], how, site, &conflict)) break;
            continue;
        }
        if (!parts) { /* the first access to a part: the history of the word is that of each byte */
            if (!r->parts) r->parts = zeros(words(r) * sizeof *r->parts);
            parts = r->parts[word] = malloc(4 * sizeof *parts);
            if (!parts) abort();
            for (int i = 0; i < 4; i++) parts[i] = r->cells[word];
        }
        for (size_t i = from; i < to; i++)
            if (race_visit(&parts[i], how, site, &conflict)) break;
        if (conflict.what) break;
    }
    if (conflict.what) tell_race(r, address, how, place, conflict);
}

void check_access(const void *pointer, uint32_t size, uint32_t how, Place place) {
    Worker *w = tg_worker;
    const uintptr_t address = (uintptr_t)pointer;
    if (!w || !w->in_kernel) return;
    if (how & (ATOMIC | VOLATILE)) tg_atomic_pause(); /* it may spin until another thread writes */
    if (address - (uintptr_t)w->fibers < MAX_THREADS * sizeof(Fiber)) return; /* threadIdx etc. */
    Region *r = region_of(address);
    if (!r) {
        if (is_private(address)) return;
        outside(address, size, how, place);
    }
    if (address + size > r->high) outside(address, size, how, place);
    if (!(how & UNALIGNED) && address % size) {
        found_at(MISALIGNED, place, (Place){0}, r, address,
                 "%s of %u bytes at byte %lu of %s: not a multiple of %u", verb(how), size,
                 (unsigned long)(address - r->low), r->name, size);
        stop();
    }
    if (r->flags & READ_ONLY && how & (WRITE | ATOMIC)) {
        found_at(READ_ONLY_WRITE, place, (Place){0}, r, address,
                 "%s to %s, which is an input (pointer to const) or __constant__", verb(how),
                 r->name);
        stop();
    }
    if (how & (ATOMIC | VOLATILE)) {
        race_synchronise(pointer, how);
        if (how & ATOMIC || !(how & WRITE) || current_fiber()->fence) how |= SYNCHRONISING;
    }
    const uint32_t site = last_site = site_of(place);
    if (r->flags & SHARED_REGION) how |= OF_THE_BLOCK;
    look_at_state(r, address, size, how, place);
    look_for_races(r, address, size, how, place, site);
    if (tg_profiling) profile_access(site, address, size, how, r->flags & SHARED_REGION);
}

/* ---- a launch under the checker ------------------------------------------------------------------ */

void check_block_begins(Worker *w) {
    for (uint32_t i = 0; i < region_count; i++)
        if (regions[i].flags & SHARED_REGION)
            memset(regions[i].state, 0, regions[i].high - regions[i].low);
    if (w->launch->shared)
        check_shared_array(&(SharedSlot){.name = "dynamic", .element = 1}, w->arena);
    memset(w->arena, 0xff, w->launch->shared); /* NaN: whoever reads it anyway should notice */
    for (uint32_t i = 0; i < w->threads; i++) w->fibers[i].depth = 0;
    race_block_begins(w);
}

void check_block_ends(Worker *w) {
    (void)w;
    if (tg_profiling) profile_block_ends();
}

void tg_check_begin(int profile, uintptr_t low, uintptr_t high) {
    tg_checking = true;
    tg_profiling = profile;
    module_low = low;
    module_high = high;
    region_count = last_region = finding_count = last_site = 0;
    memset(sites, 0, sizeof sites);
    race_launch_begins();
    profile_launch_begins();
}

/* Memory for the copy of an array, a terabyte away from the others: an index that goes astray meets
 * nothing, and the nearest array is the one that was meant. */
void *tg_far_memory(uint32_t number, size_t bytes) {
    const uintptr_t wish = ((uintptr_t)16 + number) << 40;
    void *memory = mmap((void *)wish, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

void tg_far_free(void *memory, size_t bytes) { munmap(memory, bytes); }

void tg_check_region(uintptr_t low, size_t bytes, const char *name, uint32_t element,
                     uint32_t flags, int initialised) {
    region_add(low, bytes, name, element, flags, initialised);
}

/* After a launch that ran to its end: outputs of which elements were left out. */
void tg_check_outputs(void) {
    for (uint32_t i = 0; i < region_count; i++) {
        Region *r = &regions[i];
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

uint32_t tg_check_findings(const Found **out) {
    *out = findings;
    return finding_count;
}

uint32_t tg_finding_size(void) { return sizeof(Found); }

void tg_check_end(void) {
    for (uint32_t i = 0; i < region_count; i++) region_free(&regions[i]);
    region_count = 0;
    tg_checking = tg_profiling = false;
}
