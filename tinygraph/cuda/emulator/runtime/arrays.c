/* The checker's arrays: arguments, shared memory, variables of the source, and their bytes.
 *
 *     region    an array: an argument, a shared array, a __constant__ or __device__ variable
 *     state     for each byte of it: has it a value? has this launch written it?
 *     cell      for each word of it: who wrote it last, who read it (race.c)
 */
#define _GNU_SOURCE
#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { MAX_REGIONS = 2048 };
Region tg_regions[MAX_REGIONS];
uint32_t tg_region_count;
bool tg_following;
static uint32_t last_region;

void *region_zeros(size_t bytes) { /* pages that cost nothing until they are touched */
    void *memory = mmap(NULL, bytes + 1, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) abort();
    return memory;
}

size_t region_words(const Region *r) { return (r->high - r->low + 3) / 4; }

/* `state` is that of the bytes, if the caller keeps it. */
Region *region_add(uintptr_t low, size_t bytes, const char *name, uint32_t element, uint32_t flags,
                   bool initialised, uint8_t *state) {
    if (tg_region_count == MAX_REGIONS) return NULL;
    Region *r = &tg_regions[tg_region_count++];
    *r = (Region){.low = low, .high = low + bytes, .element = element ? element : 1,
                  .flags = flags};
    snprintf(r->name, sizeof r->name, "%s", name);
    r->state = state ? state : region_zeros(bytes);
    if (state) r->flags |= KEPT_STATE;
    r->cells = region_zeros(region_words(r) * sizeof(Cell));
    if (tg_following) {
        r->shadow = region_zeros(bytes);
        if (!initialised) memset(r->shadow, 0xff, bytes);
        r->origin = region_zeros(bytes + 4);
    }
    if (initialised) memset(r->state, INITIALISED, bytes);
    return r;
}

static void region_free(Region *r) {
    if (r->parts) {
        for (size_t i = 0; i < region_words(r); i++) free(r->parts[i]);
        munmap(r->parts, region_words(r) * sizeof *r->parts + 1);
    }
    if (!(r->flags & KEPT_STATE)) munmap(r->state, r->high - r->low + 1);
    munmap(r->cells, region_words(r) * sizeof(Cell) + 1);
    if (!r->shadow) return;
    munmap(r->shadow, r->high - r->low + 1);
    munmap(r->origin, r->high - r->low + 5);
}

Region *region_of(uintptr_t address) {
    for (uint32_t k = 0; k < tg_region_count; k++) {
        uint32_t i = last_region + k;
        if (i >= tg_region_count) i -= tg_region_count;
        if (address >= tg_regions[i].low && address < tg_regions[i].high) {
            last_region = i;
            return &tg_regions[i];
        }
    }
    return NULL;
}

/* How many bytes an address lies before or behind an array; 0 for one within. */
uintptr_t region_distance(const Region *r, uintptr_t address) {
    return address < r->low ? r->low - address : address < r->high ? 0 : address - r->high;
}

/* The array that an address outside of all arrays was meant for: the nearest one. */
const Region *region_near(uintptr_t address) {
    const char *arena = tg_worker->arena;
    const bool shared = address >= (uintptr_t)arena && address < (uintptr_t)arena + ARENA_BYTES;
    const Region *best = NULL;
    uintptr_t least = UINTPTR_MAX;
    for (uint32_t i = 0; i < tg_region_count; i++) {
        const Region *r = &tg_regions[i];
        if (shared != (bool)(r->flags & SHARED_REGION)) continue;
        const uintptr_t distance = region_distance(r, address);
        if (distance < least) least = distance, best = r;
    }
    return best;
}

void check_shared_array(const SharedSlot *slot, char *address) {
    for (uint32_t i = 0; i < tg_region_count; i++) {
        Region *r = &tg_regions[i];
        if (!(r->flags & SHARED_REGION) || r->low != (uintptr_t)address) continue;
        snprintf(r->name, sizeof r->name, "%s", slot->name); /* `extern __shared__` names it late */
        r->element = slot->element;
        return;
    }
    const bool dynamic = address == tg_worker->arena;
    const size_t bytes = dynamic ? tg_worker->launch->shared : slot->size;
    region_add((uintptr_t)address, bytes, slot->name, slot->element, SHARED_REGION, false, NULL);
}

void regions_forget(void) {
    for (uint32_t i = 0; i < tg_region_count; i++) region_free(&tg_regions[i]);
    tg_region_count = last_region = 0;
}

/* Memory for the copy of an array, a terabyte away from the others: an index that goes astray meets
 * nothing, and the nearest array is the one that was meant.  A place may be taken, by the copies of
 * a launch that is looked at a second time; the system would then choose one, which may be next to
 * another copy. */
void *tg_far_memory(size_t bytes) {
    enum { FIRST = 16, LAST = 100 }; /* terabytes: below lie programs, above libraries and stacks */
    for (uintptr_t number = FIRST;; number++) {
        void *wish = (void *)(number << 40);
        void *memory = mmap(wish, bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED) return NULL;
        if (memory == wish || number == LAST) return memory;
        munmap(memory, bytes);
    }
}

void tg_far_free(void *memory, size_t bytes) { munmap(memory, bytes); }

void tg_check_region(uintptr_t low, size_t bytes, const char *name, uint32_t element,
                     uint32_t flags, int initialised) {
    region_add(low, bytes, name, element, flags, initialised, NULL);
}
