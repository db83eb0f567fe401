/* Places in the source that touch memory, and what was found there. */
#include "check.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- sites ------------------------------------------------------------------------------------ */

enum { MAX_SITES = 1 << 14 };
static Place sites[MAX_SITES];
uint32_t site_last;

/* The number of a place.  When the table is full, places that come late share number 0. */
static uint32_t number_of(Place place) {
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

uint32_t site_of(Place place) { return site_last = number_of(place); }

Place tg_site(uint32_t number) { return sites[number % MAX_SITES]; }

/* ---- findings ----------------------------------------------------------------------------------- */

enum { MAX_FINDINGS = 64, PATH = 8 };

typedef struct {
    int32_t kind, has_index;
    Place place, other;
    uintptr_t path[PATH], other_path[PATH]; /* call sites, innermost first, for barriers */
    int64_t index;
    Index3 block, thread, other_block, other_thread;
    uint32_t has_other; /* a second thread has to do with it */
    uint32_t event;     /* how many events were recorded before it */
    uint32_t others;    /* threads that were stopped for the same, */
    uint32_t uncounted; /* and whether there may be more */
    char array[64];
    char text[400];
} Found;

static Found findings[MAX_FINDINGS];
static uint32_t finding_count;
static Found *counted; /* one after which the launch goes on only to count who does the same */

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
    if (counted) { /* what else is found now may come from it */
        counted->others += counted->kind == (int)kind && same_place(counted->place, place);
        return NULL;
    }
    if (finding_count == MAX_FINDINGS || known_already(kind, place, other)) return NULL;
    Found *f = &findings[finding_count++];
    *f = (Found){.kind = kind, .place = place, .other = other, .event = record_count()};
    if (tg_current) {
        f->block = tg_current->block_idx;
        f->thread = tg_current->thread_idx;
        copy_path(current_fiber(), f->path);
    }
    return f;
}

/* The second thread of what was found last. */
void found_other(Index3 block, Index3 thread) {
    Found *f = &findings[finding_count - 1];
    f->has_other = 1;
    f->other_block = block;
    f->other_thread = thread;
}

void check_found(FindingKind kind, Place place, Place other_place, const Fiber *other,
                 const char *format, ...) {
    Found *f = found(kind, place, other_place);
    if (!f) return;
    if (other) {
        copy_path(other, f->other_path);
        found_other(other->public.block_idx, other->public.thread_idx);
    }
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(f->text, sizeof f->text, format, arguments);
    va_end(arguments);
}

bool found_at(FindingKind kind, Place place, Place other, const Region *r, uintptr_t address,
              const char *format, ...) {
    Found *f = found(kind, place, other);
    if (!f) return false;
    const int64_t offset = (int64_t)(address - r->low), element = r->element;
    f->has_index = 1;
    f->index = offset >= 0 ? offset / element : -((-offset + element - 1) / element);
    snprintf(f->array, sizeof f->array, "%s", r->name);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(f->text, sizeof f->text, format, arguments);
    va_end(arguments);
    return true;
}

/* Whether threads are counted that do what was found last; from now on they are. */
bool findings_count(void) {
    if (counted) return true;
    if (finding_count) counted = &findings[finding_count - 1];
    return false;
}

/* Some threads have not run to their end. */
void findings_uncounted(void) {
    if (counted) counted->uncounted = 1;
}

uint32_t tg_check_findings(const Found **out) {
    *out = findings;
    return finding_count;
}

/* The names of the files of a finding, for a process that has not this memory. */
void tg_finding_files(uint32_t number, const char **file, const char **other) {
    *file = findings[number].place.file;
    *other = findings[number].other.file;
}

uint32_t tg_finding_size(void) { return sizeof(Found); }

void findings_forget(void) {
    finding_count = site_last = 0;
    counted = NULL;
    memset(sites, 0, sizeof sites);
}
