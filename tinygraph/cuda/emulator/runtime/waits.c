/* Blocks that do not come to an end, and blocks that wait for others by reading global memory again
 * and again.
 *
 * Blocks run one after the other, and a block may wait for those before it alone: a GPU, too, need
 * not run a later block before an earlier one has ended.  One that waits for a later block, or for
 * nobody, is given up, and the others show whether one of them waits as well, or changes what it
 * waits for.
 */
#include "check.h"

enum { MAX_STUCK = 8 };
static const double NEXT_SECONDS = 0.25; /* for a block after one that was given up */
static struct {
    Index3 block, thread;
    uint64_t number;
    uintptr_t address; /* of the element that it reads */
    uint32_t waiting;  /* threads of the block at a barrier */
    Place place, last;
    double seconds;
} stuck[MAX_STUCK];
static uint32_t stuck_count;
static Index3 grid; /* of the launch */
static struct { uintptr_t address; uint64_t block; } spinning; /* the last place that was read so */

void waits_forget(void) { stuck_count = 0, spinning.address = 0; }

/* A thread looks at global memory by an atomic or a volatile access. */
void waits_look(uintptr_t address) {
    spinning.address = address;
    spinning.block = tg_worker->block_number;
}

/* The block is not done in time: `waiting` of its threads wait for the others of the block. */
static void tell_endless(Place place, Place last, uint32_t waiting, double seconds) {
    if (waiting)
        check_found(DEADLOCK, place, last, NULL,
                    "this thread goes round and round, and %u threads of the block wait at a "
                    "barrier or in a call of their warp; given up after %g seconds", waiting,
                    seconds);
    else
        check_found(TIMEOUT, place, last, NULL, "the block is not done after %g seconds of "
                    "computing", seconds);
}

void waits_endless(Place place, bool counting) {
    Worker *w = tg_worker;
    Launch *launch = w->launch;
    const Place last = tg_site(site_last); /* for when it was in the run time, or in a header */
    uint32_t waiting = 0;
    for (uint32_t i = 0; i < w->warp_count; i++)
        waiting += (uint32_t)__builtin_popcount(w->warps[i].at_block | w->warps[i].at_warp);
    grid = launch->grid;
    const bool waits_for_a_block =
        launch->blocks > 1 && spinning.address && spinning.block == w->block_number;
    if (!waits_for_a_block || stuck_count == MAX_STUCK || counting) {
        tell_endless(place, last, waiting, launch->timeout);
        return;
    }
    stuck[stuck_count].block = tg_current->block_idx;
    stuck[stuck_count].thread = tg_current->thread_idx;
    stuck[stuck_count].number = w->block_number;
    stuck[stuck_count].address = spinning.address;
    stuck[stuck_count].waiting = waiting;
    stuck[stuck_count].place = place, stuck[stuck_count].last = last;
    stuck[stuck_count++].seconds = launch->timeout;
    if (launch->timeout > NEXT_SECONDS) launch->timeout = NEXT_SECONDS;
    block_give_up();
}

static Index3 block_at(uint64_t number) {
    const Index3 g = grid;
    return (Index3){(uint32_t)(number % g.x), (uint32_t)(number / g.x % g.y),
                    (uint32_t)(number / g.x / g.y)};
}

/* Which element a block waits for. */
static const Region *awaited(uint32_t i, unsigned long *index) {
    const Region *r = region_of(stuck[i].address);
    *index = r ? (unsigned long)((stuck[i].address - r->low) / r->element) : 0;
    return r;
}

/* The one of those given up that block `i` waits for: the one that wrote there last, as who takes a
 * lock does, but for one that turns at the same place, by atomics; else, by habit, a block sets the
 * flag of its number, and of two flags in different arrays each belongs to the other. */
static uint32_t waits_for(uint32_t i) {
    unsigned long mine, other;
    const Region *r = awaited(i, &mine);
    const Access *write = r ? &r->cells[(stuck[i].address - r->low) / 4].write : NULL;
    for (uint32_t k = 0; write && k < stuck_count; k++)
        if (k != i && stuck[k].number + 1 == write->block && stuck[k].address != stuck[i].address)
            return k;
    for (uint32_t k = 0; k < stuck_count; k++) {
        if (k == i) continue;
        if (awaited(k, &other) != r ? stuck_count == 2 : stuck[k].number == mine) return k;
    }
    return MAX_STUCK;
}

static void tell_circle(uint32_t i, uint32_t k) {
    unsigned long mine, other;
    const Region *r = awaited(i, &mine), *s = awaited(k, &other);
    const Index3 a = stuck[i].block, b = stuck[k].block;
    check_found(DEADLOCK, stuck[i].last, stuck[k].last, NULL,
                "block (%u,%u,%u) waits for %s[%lu] to change and block (%u,%u,%u) for %s[%lu]: "
                "neither goes on; given up after %g seconds", a.x, a.y, a.z, r->name, mine, b.x,
                b.y, b.z, s->name, other, stuck[i].seconds);
}

/* Has a later block, which was not given up itself, changed what block `i` waits for? */
static bool tell_later(uint32_t i) {
    unsigned long index;
    const Region *r = awaited(i, &index);
    const Access *write = r ? &r->cells[(stuck[i].address - r->low) / 4].write : NULL;
    if (!write || write->block <= stuck[i].number + 1) return false;
    for (uint32_t k = 0; k < stuck_count; k++)
        if (stuck[k].number + 1 == write->block) return false;
    const Index3 a = stuck[i].block, b = block_at(write->block - 1);
    check_found(DEADLOCK, stuck[i].last, tg_site(write->site), NULL,
                "block (%u,%u,%u) waits for %s[%lu], which block (%u,%u,%u) changes: a block may "
                "wait for those before it, as later ones need not run yet; given up after %g "
                "seconds", a.x, a.y, a.z, r->name, index, b.x, b.y, b.z, stuck[i].seconds);
    return true;
}

/* After a launch: what is to be said of blocks that were given up. */
void tg_check_waits(void) {
    static Fiber someone;
    Thread *now = tg_current;
    tg_current = &someone.public;
    for (uint32_t i = 0; i < stuck_count; i++) {
        const uint32_t k = waits_for(i);
        if (k == MAX_STUCK) continue;
        uint32_t back = waits_for(k);
        for (uint32_t steps = 0; back != i && back != MAX_STUCK && steps < MAX_STUCK; steps++)
            back = waits_for(back);
        if (back != i) continue;
        someone.public.block_idx = stuck[i].block, someone.public.thread_idx = stuck[i].thread;
        tell_circle(i, k);
        stuck_count = 0;
    }
    for (uint32_t i = 0; i < stuck_count; i++) {
        someone.public.block_idx = stuck[i].block, someone.public.thread_idx = stuck[i].thread;
        if (tell_later(i)) stuck_count = 0;
    }
    someone.public.block_idx = stuck[0].block, someone.public.thread_idx = stuck[0].thread;
    if (stuck_count)
        tell_endless(stuck[0].place, stuck[0].last, stuck[0].waiting, stuck[0].seconds);
    stuck_count = 0;
    tg_current = now;
}
