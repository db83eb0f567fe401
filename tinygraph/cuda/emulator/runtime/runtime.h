/* The run time of the emulator: how a block of CUDA threads executes on one thread of the CPU.
 *
 *     Launch     one call of a kernel: its entry, grid, block, packed arguments
 *     Worker     one thread of the operating system; it executes whole blocks, one after the other
 *     Fiber      one CUDA thread: a stack and a place in the code where it goes on
 *     Warp       32 fibers that can exchange values; a lane is a bit in its masks
 *
 * Each file calls those above it alone; whoever watches is called through `tg_observer`.
 *
 *     fiber.c     stacks, and the switch from one fiber to another
 *     schedule.c  which fiber runs next, and how a kernel is left before its end
 *     async.c     cp.async: copies that happen at the wait
 *     warp.c      warp barriers, shuffles, votes
 *     block.c     the life of a fiber; barriers of a block; shared memory
 *     guard.c     small arrays of a launch between pages that nobody may touch
 *     faults.c    wild pointers, stack overflow, kernels that never end
 *     launch.c    a launch, its workers and their pool
 *
 *     profile.c   sectors and bank conflicts of each line
 *     arrays.c    the checker's arrays and the state of their bytes
 *     record.c    what happened, one event after the other
 *     findings.c  places in the source, and what was found there
 *     race.c      who touched which byte, and whether the two were ordered
 *     memory.c    the memory of a program, and the heap of its kernels
 *     clash.c     an access that meets one which nothing orders before it
 *     locks.c     locks that are taken in another order than elsewhere
 *     waits.c     blocks that do not come to an end, and for whom they wait
 *     check.c     the checker: one access to memory, one launch
 *     trace.c     the checker of a launch that is recorded
 *     arithmetic.c  integer arithmetic that C++ leaves undefined
 *     values.c    which values are undefined, and where one is used
 *     hooks.c     what the compiler calls before every access to memory
 */
#pragma once
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WARP = 32, MAX_THREADS = 1024, MAX_WARPS = MAX_THREADS / WARP, MAX_SHARED_SLOTS = 64 };
enum {
    STACK_BYTES = 128 * 1024,
    SHARED_LIMIT = 227 * 1024, /* bytes a block may have at most, dynamic ones included */
    SHARED_GAP = 64 * 1024,    /* between shared arrays while checking: an overflow hits no other */
    ARENA_BYTES = SHARED_LIMIT + (MAX_SHARED_SLOTS + 2) * SHARED_GAP,
};

typedef struct { uint32_t x, y, z; } Index3;

/* What the kernel sees of its thread; `tg_thread` in include/cuda_emulator.h is the same. */
typedef struct {
    Index3 thread_idx, block_idx, block_dim, grid_dim;
    uint32_t linear, lane, warp;
} Thread;

/* A declaration `__shared__`; `tg_shared_slot` in include/cuda_emulator.h is the same. */
typedef struct {
    const char *name;
    uint32_t size, align, element;
    const char *file;
    int32_t line;
} SharedSlot;

/* A place in the source, or a program counter where the compiler gave no place. */
typedef struct {
    const char *file;
    int32_t line;
    uintptr_t pc;
} Place;

typedef enum { WARP_BARRIER, WARP_SHUFFLE, WARP_VOTE, WARP_EXCHANGE } WarpCall;

/* What a lane brings to a call of its warp, and what it takes away. */
typedef struct {
    WarpCall call;
    uint32_t mask;
    Place place;
    uint64_t value;  /* shuffle: the value; vote: the predicate; afterwards the result */
    int32_t source;  /* shuffle: the lane to take from */
    const void *mine; /* exchange: `bytes` bytes of this lane, and room for 32 times as much */
    uint32_t bytes;
    void *all;
    uint64_t undefined; /* of the value, while values are followed: these bits, from this origin */
    uint32_t origin;
    uint64_t number; /* of this call among those of the block */
} Meeting;

struct Knowledge; /* race.c: which accesses of other blocks and warps come before mine */
struct CopyQueue; /* async.c */

enum { MAX_FRAMES = 24 };

typedef struct Fiber {
    Thread public; /* first: `tg_current` points here */
    void *sp;      /* where it goes on; NULL before it has started */
    char *stack;   /* lowest address of its stack, NULL while it has none */
    Place barrier; /* where it waits for the block */
    uint64_t barrier_path;
    Meeting meeting;
    uint32_t calls; /* of its warp that it has made */
    struct CopyQueue *copies;
    /* while checking */
    uintptr_t frames[MAX_FRAMES]; /* return addresses of the calls it is in, outermost first */
    uint32_t depth;
    uint32_t clock;      /* grows at each synchronisation of this fiber */
    uint32_t seen[WARP]; /* how far the other lanes' clocks had come when we last met */
    struct { uintptr_t address; uint32_t size, epoch, found, site; uint64_t value; }
        look; /* a plain read that may be the first step of an atomicCAS: as what it was found */
    struct Locks *locks; /* locks.c: those that it holds */
    struct Knowledge *known, *fence; /* what comes before this thread; before its last fence */
    bool fence_in_block;
} Fiber;

typedef struct {
    uint32_t fresh;   /* lanes that have not started */
    uint32_t ready;   /* lanes that can go on */
    uint32_t at_block; /* lanes that wait for the block */
    uint32_t at_warp; /* lanes that wait for their warp */
    uint32_t alive;   /* lanes that have not left the kernel */
    uint32_t gathering; /* lanes that ask who is with them: answered when no other can go on */
} Warp;

typedef void (*Entry)(const char *packed);

typedef enum {
    FAIL_NONE, FAIL_POINTER, FAIL_STACK, FAIL_ARITHMETIC, FAIL_TIMEOUT, FAIL_SHARED, FAIL_DEADLOCK,
    FAIL_TRAP, FAIL_STOPPED, /* by the checker, which has its own words */
    FAIL_HEAP     /* a free of what is not in use */
} FailureKind;

/* Why a launch ended early.  Python turns it into an error. */
typedef struct {
    int32_t kind;
    int32_t line;
    uintptr_t pc;
    Index3 block, thread;
    int32_t argument; /* the array beside which it was, -1 for none; `offset` bytes from its begin */
    int64_t offset;
    char file[256];
    char text[256];
} Failure;

/* guard.c */
enum { GUARDED_ARRAYS = 16, GUARDED_BYTES = 64 * 1024, MAX_ARGUMENTS = 128 };
typedef struct {
    uintptr_t low, high; /* where it belongs; arrays that share memory are one */
    char *copy;          /* between guards; NULL for a large one */
    bool written;
} GuardedArray;
typedef struct {
    uint32_t count, arguments;
    char *places;
    const uint64_t *packed;
    GuardedArray arrays[GUARDED_ARRAYS];
} Guards;

typedef struct {
    Entry entry;
    const char *packed;
    Index3 grid, block;
    uint32_t shared; /* dynamic shared memory, bytes */
    uint32_t threads;
    uint64_t blocks;
    double timeout; /* seconds for one block */
    uintptr_t module_low, module_high; /* where the code and the data of the kernel's module lie */
    atomic_uint_fast64_t next;
    atomic_bool stop;
    bool together; /* all blocks of the grid run at the same time */
    atomic_flag noting; /* held while `failure` is written, */
    uint64_t failed;    /* that of this block */
    Failure *failure;
    Guards guards;
} Launch;

typedef struct Worker {
    Launch *launch;
    void *home;    /* the stack pointer to return to when the block is done */
    void (*body)(void); /* what runs on the stack of a fiber */
    Fiber *fibers; /* one for each thread of a block */
    Warp warps[MAX_WARPS];
    uint32_t threads, warp_count, warp; /* `warp`: the one that runs */
    struct Fiber *(*next_fiber)(struct Worker *w); /* the order in which fibers run */
    uint32_t first_warp;
    uint32_t busy;    /* warps that have fresh or ready lanes, as bits */
    uint32_t alive, arrived;
    uint32_t votes, vote_result;
    uint64_t calls;   /* of warps that its lanes have made */
    uint64_t block_number;
    uint32_t epoch;   /* barriers that the block has passed */
    bool in_kernel;   /* kernel code runs: a fault is the kernel's fault */
    uint64_t number;  /* of the block in the grid */
    int32_t argument; /* beside which an access has failed, as in Failure */
    int64_t offset;
    bool abandoned;
    bool at_grid; /* the barrier at which threads wait is one of the grid */
    bool paused;  /* all threads have come to it, and the block waits for the others */
    Fiber *goes_on; /* the thread that does when they have come, too */
    struct Knowledge *known; /* race.c: what all threads of the block know since the last barrier */
    char *arena;      /* shared memory */
    char *places;     /* for guarded arrays */
    uint32_t arena_used, shared_bytes;
    struct { const SharedSlot *slot; uint32_t offset; } slots[MAX_SHARED_SLOTS];
    uint32_t slot_count;
    char **free_stacks;
    uint32_t free_count, stack_count;
    struct { char *low, *high; } chunks[64]; /* all memory of stacks */
    uint32_t chunk_count;
    uint32_t pauses;  /* atomics that the block has executed: some give way to other fibers */
    /* for the watchdog */
    pthread_t thread;
    uint32_t forks;
    atomic_bool working;
    atomic_uint_fast64_t blocks_done;
    uint64_t watched; /* `blocks_done` when the watchdog looked last, and since when it is so: */
    double watched_since; /* seconds of `thread` on a processor */
    atomic_bool overdue;
    uint32_t late_looks; /* of the watchdog, after the time was over */
    struct Worker *next; /* all workers that there are */
} Worker;

extern __thread Thread *tg_current;
extern __thread Worker *tg_worker;

static inline Fiber *current_fiber(void) { return (Fiber *)tg_current; }
static inline Warp *current_warp(void) { return &tg_worker->warps[tg_current->warp]; }
static inline Fiber *lane_fiber(uint32_t warp, uint32_t lane) {
    return &tg_worker->fibers[warp * WARP + lane];
}
static inline uint32_t first_lane(uint32_t mask) { return (uint32_t)__builtin_ctz(mask); }
static inline uint32_t last_lane(uint32_t mask) { return 31u - (uint32_t)__builtin_clz(mask); }

/* The lanes of a warp that the block has at all: the last warp may be partly filled. */
static inline uint32_t lanes_of_warp(const Worker *w, uint32_t warp) {
    uint32_t rest = w->threads - warp * WARP;
    return rest >= WARP ? ~0u : (1u << rest) - 1;
}

/* Who watches a launch: the checker (check.c).  Without one `tg_observer` is NULL; with one, the build
 * of the kernel has hooks, and a single worker executes all blocks. */
typedef enum {
    BARRIER_DIVERGENCE = 1, WARP_SYNC, DEADLOCK, RACE, OUT_OF_BOUNDS, UNINITIALIZED,
    UNWRITTEN_OUTPUT, MISALIGNED, READ_ONLY_WRITE, TIMEOUT, INTEGER_OVERFLOW, ARITHMETIC,
    NOTE = 64 /* beside a kind: no mistake since Volta, where threads that have left do not count */
} FindingKind;
enum { READ = 0, WRITE = 1, ATOMIC = 2, VOLATILE = 4, UNALIGNED = 8, SYNCHRONISING = 16,
       OF_THE_BLOCK = 32, /* shared memory: other blocks have their own */
       RELEASING = 64, /* an atomic after a __threadfence */
       VALUE_SHIFT = 7 /* of a plain read: some bits of what was there, from here on */ };
typedef struct {
    void (*block_begins)(Worker *w);
    void (*block_ends)(void);
    void (*grid_met)(Worker **blocks, uint64_t count);
    void (*barrier_passed)(Worker *w);
    void (*warp_meets)(uint32_t warp, uint32_t lanes); /* before values are exchanged, and after: */
    void (*warp_met)(uint32_t warp, uint32_t lanes);
    void (*absent)(uint32_t warp, uint32_t lane, uint32_t source); /* whose value a lane takes */
    void (*lane_gives)(Meeting *mine); /* a lane comes to a shuffle or a vote, */
    void (*lane_takes)(const Meeting *mine); /* and goes on with its result */
    void (*copied)(void *to, const void *from, size_t size); /* by an exchange */
    void (*shared_array)(const SharedSlot *slot, char *address);
    void (*access)(const void *address, uint32_t size, uint32_t how, Place place);
    bool (*amid_a_store)(void); /* the current thread may not give way now; NULL: it always may */
    uint64_t (*barrier_reached)(const Fiber *fiber); /* a number for the calls that it is in */
    void (*endless)(Place place);              /* the block does not come to an end */
    /* Note a finding about the thread `tg_current`; `other` is a second one that has to do with it. */
    void (*found)(FindingKind kind, Place place, Place other_place, const Fiber *other,
                  const char *format, ...);
} Observer;
extern __thread const Observer *tg_observer;
extern __thread bool tg_reversed; /* lanes and warps of the next launch run from the last one on */

/* fiber.c */
void fiber_switch(void **save_sp, void *to_sp);
void fiber_prepare(Fiber *fiber, void (*start)(void));
char *stack_take(Worker *w);
void stack_give(Worker *w, char *stack);
bool stack_guard_hit(const Fiber *fiber, uintptr_t address);

/* schedule.c */
void schedule_mark(Worker *w, uint32_t warp);  /* the lanes of a warp that can run have changed */
void schedule_order(Worker *w, bool reversed);
void schedule_gathered(Worker *w);             /* no other lane of the warp can go on */
static inline Fiber *schedule_next(Worker *w) { /* off its list, or NULL */
    if (w->warps[w->warp].gathering && !(w->busy >> w->warp & 1)) schedule_gathered(w);
    return w->next_fiber(w);
}
void schedule_yield(void);                     /* let another fiber run; returns in our turn */
void schedule_release(uint32_t warp, uint32_t lanes); /* lanes that have met may go on */
_Noreturn void schedule_deadlock(Worker *w);
_Noreturn void schedule_abandon(void);         /* leave the kernel from anywhere, all fibers */
void launch_fail(FailureKind kind, Place place, const char *format, ...);
void tg_nap(void);
_Noreturn void tg_trap(const char *what, const char *file, int line);
void tg_atomic_pause(void);

/* block.c */
bool block_run(Worker *w, uint64_t number);
bool block_go_on(Worker *w);
_Noreturn void block_thread_leaves(void); /* from wherever it is */
_Noreturn void block_give_up(void);

/* warp.c */
void warp_lane_left(uint32_t warp);

/* async.c */
void copies_drop(Fiber *fiber);

/* guard.c */
void guards_enter(Guards *g, Worker *w, uint64_t *packed, uint32_t count);
int32_t guards_find(const Guards *g, uintptr_t address, int64_t *offset);
uintptr_t guards_leave(const Guards *g);
void guards_free(Worker *w);

/* faults.c */
void faults_watch(Worker *w); /* this thread of the operating system may execute kernels */
void faults_unwatch(Worker *w);
void faults_work_begins(Worker *w);
void faults_work_ends(Worker *w);
