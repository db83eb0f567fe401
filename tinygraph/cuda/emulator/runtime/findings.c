/* Places in the source that touch memory, and what was found there. */
#include "check.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- sites ------------------------------------------------------------------------------------ */

enum { MAX_SITES = 1 << 14 };
static Place sites[MAX_SITES];
static bool swapped[MAX_SITES]; /* a plain read there came before an atomicCAS of its value */
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

void site_swaps(uint32_t number) { swapped[number] = true; }
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
    uint32_t seen;      /* how often it was met; of a race: */
    uint32_t alike;     /* how often both threads wrote the same value, */
    uint32_t look;      /* a plain read that may come before an atomicCAS, */
    uint32_t sure;      /* and whether it is known that it did not */
    char array[64];
    char text[400];
} Found;

static Found findings[MAX_FINDINGS];
static uint32_t finding_count;
static Found *met;     /* the one that was met last, new or known */
static Found *counted; /* one after which the launch goes on only to count who does the same */

static bool same_place(Place a, Place b) {
    return a.pc == b.pc && a.line == b.line && a.file == b.file;
}

static Found *known(FindingKind kind, Place place, Place other) {
    for (uint32_t i = 0; i < finding_count; i++) {
        Found *f = &findings[i];
        if (f->kind != (int)kind) continue;
        if (same_place(f->place, place) && same_place(f->other, other)) return f;
        if (same_place(f->place, other) && same_place(f->other, place)) return f;
    }
    return NULL;
}

static void copy_path(const Fiber *fiber, uintptr_t *path) {
    uint32_t depth = fiber->depth < MAX_FRAMES ? fiber->depth : MAX_FRAMES;
    for (uint32_t i = 0; i < PATH && i < depth; i++) path[i] = fiber->frames[depth - 1 - i];
}

static Found *found(FindingKind kind, Place place, Place other) {
    met = NULL;
    if (counted) { /* what else is found now may come from it */
        counted->others += counted->kind == (int)kind && same_place(counted->place, place);
        return NULL;
    }
    Found *f = known(kind, place, other);
    if (!f && finding_count == MAX_FINDINGS) return NULL;
    met = f ? f : &findings[finding_count++];
    if (f) {
        f->seen++;
        return NULL;
    }
    f = met;
    *f = (Found){.kind = kind, .place = place, .other = other, .event = record_count(), .seen = 1};
    if (tg_current) {
        f->block = tg_current->block_idx;
        f->thread = tg_current->thread_idx;
        copy_path(current_fiber(), f->path);
    }
    return f;
}

/* The second thread of what was found last. */
void found_other(Index3 block, Index3 thread) {
    met->has_other = 1;
    met->other_block = block;
    met->other_thread = thread;
}

/* The number of what was met last, from 1; 0 if it is not kept. */
uint32_t found_number(void) { return met ? (uint32_t)(met - findings) + 1 : 0; }
/* A race of an atomic with a plain read at this site; 0: it was another one than that. */
void found_look(uint32_t number, uint32_t site) {
    findings[number - 1].look = site;
    findings[number - 1].sure |= !site;
}
void found_alike(uint32_t number) { findings[number - 1].alike++; }

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

const char *access_verb(uint32_t how) {
    return how & ATOMIC ? "atomic" : how & WRITE ? "write" : "read";
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
    uint32_t kept = 0; /* after the launch, when nobody is counted any more */
    for (uint32_t i = 0; i < finding_count; i++)
        if (findings[i].sure || !swapped[findings[i].look]) findings[kept++] = findings[i];
    finding_count = kept;
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
    memset(swapped, 0, sizeof swapped);
}
