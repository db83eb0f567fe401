/* A launch: blocks are handed out, one after the other, to the caller and a pool of threads.
 *
 * Starting a thread for each launch would cost more than most launches.  The pool's threads sleep
 * between launches and are woken when there is enough to do.
 */
#define _GNU_SOURCE
#include "runtime.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* ---- a worker and its blocks ------------------------------------------------------------------- */

static pthread_key_t worker_key;
static pthread_once_t key_once = PTHREAD_ONCE_INIT;

static void worker_free(void *pointer) {
    Worker *w = pointer;
    faults_unwatch(w);
    for (uint32_t i = 0; i < w->chunk_count; i++)
        munmap(w->chunks[i].low, (size_t)(w->chunks[i].high - w->chunks[i].low));
    munmap(w->arena, ARENA_BYTES);
    guards_free(w);
    free(w->free_stacks);
    free(w->fibers);
    free(w);
}

static void make_key(void) { pthread_key_create(&worker_key, worker_free); }

static Worker *new_worker(void) {
    Worker *w = calloc(1, sizeof *w);
    if (!w) return NULL;
    w->fibers = calloc(MAX_THREADS, sizeof *w->fibers);
    w->arena = mmap(NULL, ARENA_BYTES, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (!w->fibers || w->arena == MAP_FAILED) return NULL;
    faults_watch(w);
    return w;
}

/* The worker of this thread of the operating system; NULL without memory. */
static Worker *own_worker(void) {
    pthread_once(&key_once, make_key);
    Worker *w = pthread_getspecific(worker_key);
    if (w) return w;
    w = new_worker();
    if (w) pthread_setspecific(worker_key, w);
    return w;
}

/* Give each fiber its place in the block; the same for all blocks of the launch. */
static void number_threads(Worker *w, const Launch *launch) {
    const Index3 block = launch->block;
    for (uint32_t i = 0; i < launch->threads; i++) {
        Thread *thread = &w->fibers[i].public;
        thread->thread_idx = (Index3){i % block.x, i / block.x % block.y, i / block.x / block.y};
        thread->block_dim = block;
        thread->grid_dim = launch->grid;
        thread->linear = i;
        thread->lane = i % WARP;
        thread->warp = i / WARP;
        w->fibers[i].stack = NULL;
    }
}

static void take_up(Worker *w, Launch *launch) {
    w->launch = launch;
    w->threads = launch->threads;
    w->warp_count = (launch->threads + WARP - 1) / WARP;
    w->slot_count = 0;
    w->shared_bytes = launch->shared;
    w->arena_used = launch->shared + (tg_observer ? SHARED_GAP : 0);
    number_threads(w, launch);
    schedule_order(w, tg_reversed);
}

static void work(Worker *w, Launch *launch) {
    tg_worker = w;
    take_up(w, launch);
    faults_work_begins(w);
    while (!atomic_load(&launch->stop)) {
        const uint64_t number = atomic_fetch_add(&launch->next, 1);
        if (number >= launch->blocks) break;
        block_run(w, number);
        atomic_fetch_add(&w->blocks_done, 1);
    }
    faults_work_ends(w);
    tg_worker = NULL;
}

/* ---- blocks that run together ------------------------------------------------------------------
 *
 * Each block has a worker of its own.  They take turns on this thread: a block runs until all its
 * threads wait at a barrier of the grid, then the next one does.
 */

/* Some blocks wait for others, which have ended. */
static void fail_grid(Worker **blocks, uint64_t count) {
    const Worker *ended = NULL;
    Worker *waits = NULL;
    for (uint64_t i = 0; i < count; i++) {
        if (blocks[i]->paused) waits = waits ? waits : blocks[i];
        else ended = ended ? ended : blocks[i];
    }
    tg_worker = waits;
    tg_current = &waits->goes_on->public;
    const Index3 b = ended->fibers[0].public.block_idx;
    static const char TEXT[] = "the block waits here for the grid, and block (%u,%u,%u) has ended";
    if (tg_observer)
        tg_observer->found(DEADLOCK, waits->goes_on->barrier, (Place){0}, NULL, TEXT, b.x, b.y, b.z);
    launch_fail(FAIL_DEADLOCK, waits->goes_on->barrier, TEXT, b.x, b.y, b.z);
    tg_current = NULL;
}

static void run_together(Worker **blocks, Launch *launch) {
    for (bool first = true, waiting = true; waiting; first = false) {
        uint64_t paused = 0;
        for (uint64_t i = 0; i < launch->blocks && !atomic_load(&launch->stop); i++) {
            Worker *w = tg_worker = blocks[i];
            faults_work_begins(w);
            paused += first ? !block_run(w, i) : !block_go_on(w);
            faults_work_ends(w);
            atomic_fetch_add(&w->blocks_done, 1);
        }
        if (atomic_load(&launch->stop)) return;
        waiting = paused > 0;
        if (waiting && paused < launch->blocks) {
            fail_grid(blocks, launch->blocks);
            return;
        }
        if (waiting && tg_observer) tg_observer->grid_met(blocks, launch->blocks);
    }
}

static void work_together(Launch *launch) {
    Worker **blocks = calloc(launch->blocks, sizeof *blocks);
    for (uint64_t i = 0; blocks && i < launch->blocks; i++) {
        blocks[i] = new_worker();
        if (!blocks[i]) abort(); /* the machine has no memory */
        take_up(blocks[i], launch);
    }
    if (!blocks) abort();
    run_together(blocks, launch);
    tg_worker = NULL;
    for (uint64_t i = 0; i < launch->blocks; i++) worker_free(blocks[i]);
    free(blocks);
}

/* ---- the pool ------------------------------------------------------------------------------------ */

enum { MAX_POOL = 63, WORTH_WAKING = 2048 }; /* CUDA threads */

static struct {
    pthread_mutex_t busy; /* held by the launch that uses the pool */
    pthread_mutex_t lock;
    pthread_cond_t begin, end;
    Launch *launch;
    uint64_t generation; /* of launches */
    int threads, wanted, working;
} pool = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER,
          PTHREAD_COND_INITIALIZER, NULL, 0, 0, 0, 0};

static void *pool_thread(void *unused) {
    (void)unused;
    Worker *w = own_worker();
    pthread_mutex_lock(&pool.lock);
    uint64_t seen = pool.generation - 1; /* started for the launch that is there already */
    for (;;) {
        while (pool.generation == seen || !pool.wanted) pthread_cond_wait(&pool.begin, &pool.lock);
        seen = pool.generation;
        pool.wanted--;
        pool.working++;
        Launch *launch = pool.launch;
        pthread_mutex_unlock(&pool.lock);
        if (w) work(w, launch);
        pthread_mutex_lock(&pool.lock);
        if (--pool.working == 0) pthread_cond_signal(&pool.end);
    }
    return NULL;
}

static void pool_after_fork(void) {
    pthread_mutex_init(&pool.busy, NULL);
    pthread_mutex_init(&pool.lock, NULL);
    pthread_cond_init(&pool.begin, NULL);
    pthread_cond_init(&pool.end, NULL);
    pool.launch = NULL;
    pool.threads = pool.wanted = pool.working = 0;
}

static void pool_watch_forks(void) { pthread_atfork(NULL, NULL, pool_after_fork); }

static void pool_begin(Launch *launch, int helpers) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, pool_watch_forks);
    pthread_mutex_lock(&pool.lock);
    pool.launch = launch;
    pool.generation++;
    pool.wanted = helpers;
    while (pool.threads < helpers) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, pool_thread, NULL)) break;
        pthread_detach(thread);
        pool.threads++;
    }
    pthread_cond_broadcast(&pool.begin);
    pthread_mutex_unlock(&pool.lock);
}

static void pool_end(void) {
    pthread_mutex_lock(&pool.lock);
    pool.wanted = 0; /* those that have not woken up yet are not needed any more */
    while (pool.working) pthread_cond_wait(&pool.end, &pool.lock);
    pool.launch = NULL;
    pthread_mutex_unlock(&pool.lock);
}

/* ---- what Python calls ------------------------------------------------------------------------- */

/* Run a kernel whose blocks wait for each other: all at the same time. */
int tg_launch_together(Entry entry, const char *packed, const uint32_t grid[3],
                       const uint32_t block[3], uint32_t shared, double timeout,
                       const uintptr_t module[2], Failure *failure) {
    Launch launch = {
        .entry = entry, .packed = packed, .grid = {grid[0], grid[1], grid[2]},
        .block = {block[0], block[1], block[2]}, .shared = shared,
        .threads = block[0] * block[1] * block[2], .together = true,
        .blocks = (uint64_t)grid[0] * grid[1] * grid[2], .timeout = timeout,
        .module_low = module[0], .module_high = module[1], .noting = ATOMIC_FLAG_INIT,
        .failure = failure,
    };
    failure->kind = FAIL_NONE;
    work_together(&launch);
    fflush(stdout);
    return failure->kind;
}

/* Run a kernel.  `packed` holds `count` arguments and the sizes of arrays behind them (guard.c).
 * Returns 0, or the kind of failure, which `failure` describes. */
int tg_launch(Entry entry, const char *packed, uint32_t count, const uint32_t grid[3],
              const uint32_t block[3], uint32_t shared, int workers, double timeout,
              const uintptr_t module[2], Failure *failure) {
    uint64_t arguments[2 * MAX_ARGUMENTS];
    const bool guarded = count && count <= MAX_ARGUMENTS;
    if (guarded) memcpy(arguments, packed, 2 * count * sizeof *arguments);
    Launch launch = {
        .entry = entry, .packed = guarded ? (const char *)arguments : packed, .grid = {grid[0], grid[1], grid[2]},
        .block = {block[0], block[1], block[2]}, .shared = shared,
        .threads = block[0] * block[1] * block[2],
        .blocks = (uint64_t)grid[0] * grid[1] * grid[2], .timeout = timeout,
        .module_low = module[0], .module_high = module[1], .noting = ATOMIC_FLAG_INIT,
        .failure = failure,
    };
    failure->kind = FAIL_NONE;
    Worker *own = own_worker();
    if (!own) abort();
    if (guarded) guards_enter(&launch.guards, own, arguments, count);
    int helpers = workers - 1 < MAX_POOL ? workers - 1 : MAX_POOL;
    if ((uint64_t)helpers > launch.blocks - 1) helpers = (int)(launch.blocks - 1);
    const bool worth = launch.blocks * launch.threads >= WORTH_WAKING;
    const bool pooled =
        helpers > 0 && worth && !tg_observer && pthread_mutex_trylock(&pool.busy) == 0;
    if (pooled) pool_begin(&launch, helpers);
    work(own, &launch);
    if (pooled) {
        pool_end();
        pthread_mutex_unlock(&pool.busy);
    }
    fflush(stdout);
    const uintptr_t overwritten = guarded ? guards_leave(&launch.guards) : 0;
    if (overwritten && !failure->kind) {
        *failure = (Failure){.kind = FAIL_POINTER, .text = "a write beside an array"};
        failure->argument = guards_find(&launch.guards, overwritten, &failure->offset);
    }
    return failure->kind;
}

struct range { uintptr_t address, low, high; };

static int find_module(struct dl_phdr_info *info, size_t size, void *pointer) {
    (void)size;
    struct range *range = pointer;
    uintptr_t low = UINTPTR_MAX, high = 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type != PT_LOAD) continue;
        const uintptr_t begin = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
        const uintptr_t end = begin + info->dlpi_phdr[i].p_memsz;
        if (begin < low) low = begin;
        if (end > high) high = end;
    }
    if (range->address < low || range->address >= high) return 0;
    *range = (struct range){info->dlpi_addr, low, high};
    return 1;
}

/* The load address of the library around an address, and the first and last byte of it. */
int tg_module(uintptr_t address, uintptr_t out[3]) {
    struct range range = {address, 0, 0};
    const int found = dl_iterate_phdr(find_module, &range);
    out[0] = range.address;
    out[1] = range.low;
    out[2] = range.high;
    return found;
}

uint32_t tg_failure_size(void) { return sizeof(Failure); }
