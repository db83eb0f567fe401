/* The checker: what its files know of each other. */
#pragma once
#include "runtime.h"

/* race.c */
typedef struct {
    uint32_t block, epoch, clock, site; /* `block` counts from 1; 0: nobody was here */
    uint16_t thread, how;
} Access;
typedef struct {
    Access write, atomic, reads[2]; /* `atomic`: a write before `write` that it is not ordered by */
} Cell; /* who touched a word, or a byte of a word that is used in parts */
typedef struct {
    Access earlier;
    const char *what;
    bool last; /* what the earlier access wrote is still there */
} Conflict;
void race_launch_begins(void);
void race_block_begins(Worker *w);
void race_block_ends(void);
void race_grid_met(Worker **blocks, uint64_t count);
void race_barrier_passed(Worker *w);
void race_warp_met(uint32_t warp, uint32_t lanes);
void race_synchronise(const void *address, uint32_t how); /* an atomic, or a volatile access */
void race_expected(Cell *cell, uint32_t bits); /* by an atomicCAS: these were there before */
bool race_visit(Cell *cell, uint32_t how, uint32_t site, Conflict *conflict);

/* profile.c */
extern bool tg_profiling;
void profile_launch_begins(void);
void profile_access(uint32_t site, uintptr_t address, uint32_t size, uint32_t how, bool shared);
void profile_code(uintptr_t pc);
void profile_barrier(void);

/* arrays.c */
extern bool tg_following; /* values are followed: arrays have shadows */
enum { INITIALISED = 1, WRITTEN = 2, TAKEN = 4 /* by malloc in a kernel */ };
enum { SHARED_REGION = 1, READ_ONLY = 2, MUST_BE_WRITTEN = 4, OUTPUT_IF_ONLY_WRITTEN = 8,
       OF_THE_MODULE = 16, /* a __constant__ or __device__ variable */
       /* memory of a program: given back with cudaFree; its state is kept from launch to launch; the
        * size of its elements is that of the first access */
       GIVEN_BACK = 32, KEPT_STATE = 64, OPEN_ELEMENT = 128,
       HEAP = 256, /* that of the device: bytes are TAKEN or nobody's */
       SWAPPED = 512 /* an atomicCAS has come: plain reads keep some bits of what was there */ };
typedef struct {
    uintptr_t low, high;
    char name[64];
    uint32_t element, flags;
    bool reads_initial, writes;
    uint8_t *state;
    Cell *cells;  /* one for each word of four bytes */
    Cell **parts; /* for words that were touched in parts: four cells, one a byte */
    uint8_t *shadow, *origin; /* while values are followed: values.c */
} Region;
extern Region tg_regions[];
extern uint32_t tg_region_count;
void *region_zeros(size_t bytes);
size_t region_words(const Region *r);
Region *region_add(uintptr_t low, size_t bytes, const char *name, uint32_t element, uint32_t flags,
                   bool initialised, uint8_t *state);
Region *region_of(uintptr_t address);
uintptr_t region_distance(const Region *r, uintptr_t address);
const Region *region_near(uintptr_t address);
void regions_forget(void);
void check_shared_array(const SharedSlot *slot, char *address);

/* record.c */
typedef enum {
    CODE, LOAD, STORE, ATOMIC_UPDATE, BARRIER, RELEASE, SYNCWARP, SHUFFLE, VOTE, EXCHANGE, END
} EventKind;
typedef struct {
    uint8_t kind, refused; /* `refused`: the checker has stopped the thread before this access */
    uint16_t size;         /* bytes that it touches */
    uint32_t thread, epoch, mask; /* `mask`: of a call of the warp; `epoch`: barriers passed */
    uint64_t block;
    int32_t array, source; /* number of the region, -1 for none; the lane that a shuffle takes from */
    int64_t offset;        /* from the begin of the array */
    uint64_t value[2];     /* what was read, written, taken: up to 16 bytes */
    uint64_t before;       /* what lay there before; what a lane gave */
    Place place;
    uintptr_t callers[3]; /* the calls that the thread is in, innermost first */
} Event;
void record_begin(uint32_t limit);
void record_pause(bool paused); /* in blocks that nobody wants */
void record_access(const Region *r, uintptr_t address, uint32_t size, uint32_t how, Place place);
void record_refused(const Region *r, uintptr_t address, uint32_t size, uint32_t how, Place place);
void record_code(uintptr_t pc, uintptr_t frame);
Event *record_event(EventKind kind, const Fiber *fiber, Place place);
uint32_t record_count(void);
Event *record_at(uint32_t number); /* NULL if there is none */
uint32_t record_end(const Event **out, uint64_t *cut);

/* findings.c */
extern uint32_t site_last; /* the last place that was asked for */
uint32_t site_of(Place place);
Place tg_site(uint32_t number);
void site_swaps(uint32_t number);
void findings_forget(void);
bool findings_count(void);
void findings_uncounted(void);
void check_found(FindingKind kind, Place place, Place other_place, const Fiber *other,
                 const char *format, ...);
const char *access_verb(uint32_t how);
/* A finding about an element of an array; false if it is known already. */
__attribute__((format(printf, 6, 7))) bool
found_at(FindingKind kind, Place place, Place other, const Region *r, uintptr_t address,
         const char *format, ...);
void found_other(Index3 block, Index3 thread); /* the second thread of what was found last */
uint32_t found_number(void);
void found_look(uint32_t number, uint32_t site);
void found_alike(uint32_t number);

/* memory.c */
void tg_check_memory(uintptr_t low, size_t bytes, const char *name, uint32_t element, uint32_t flags,
                     uint8_t *state);
void check_heap_taken(uintptr_t low, size_t bytes);
void check_heap_given(uintptr_t low, size_t bytes);
bool memory_refuses(Region *r, uintptr_t address, uint32_t size, const char *verb, Place place);

/* clash.c */
extern __attribute__((visibility("hidden"))) uint32_t clash_stored; /* a store is looked at, */
void clash_settle(void); /* as soon as it is done */
void clash_look(Region *r, uintptr_t address, uint32_t size, uint32_t how, Place place,
                uint32_t site);

/* locks.c */
void locks_forget(void);
void locks_thread_begins(Fiber *fiber);
void locks_give(uintptr_t address);
void locks_grid_met(void);

/* waits.c */
void waits_forget(void);
void waits_look(uintptr_t address);
void waits_endless(Place place, bool counting);
void tg_check_waits(void);

/* check.c */
void check_beyond(Place place, const void *type, uintptr_t index, const char *text);
_Noreturn void check_stop(void); /* this thread cannot go on */
void tg_check_begin(int profile, uintptr_t low, uintptr_t high);
void tg_check_end(void);
void check_block_begins(Worker *w);
typedef void AccessWatcher(const Region *r, uintptr_t address, uint32_t size, uint32_t how,
                           Place place, uint32_t site);
extern AccessWatcher *tg_watch_access; /* who else wants to know of accesses, or NULL */
extern const Observer CHECKER;
void check_access(const void *address, uint32_t size, uint32_t how, Place place);
