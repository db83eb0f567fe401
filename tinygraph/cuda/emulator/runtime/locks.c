/* Locks that threads take in another order than others: each may hold one and wait for the other's.
 *
 * A lock is a word that a thread sets from zero by atomicCAS or atomicExch, and that the same thread
 * sets back to zero.  Who takes one while it holds another has put the two in an order; a circle of
 * such orders, of different threads, is a deadlock in some order of execution, though not in this
 * one: blocks run one after the other here.  Locks taken in both orders under a third one are safe.
 *
 * A thread that finds the second lock taken may as well give the first one back, and no order comes
 * of that.  So a circle is looked at once more, in a launch on other copies of the arrays, in which
 * who holds one lock finds the next one taken: does it insist?
 *
 * Source: Havelund, "Using runtime analysis to guide model checking of Java programs", SPIN 2000.
 */
#include "check.h"

#include <stdio.h>
#include <stdlib.h>

enum { MAX_HELD = 4, MAX_ORDERS = 1024, MAX_LOCKS = 1024, MAX_CIRCLE = 8, MAX_STEPS = 1 << 20 };
/* Tries in vain; how often a thread that gives way is asked; of how many threads one order is known. */
enum { INSISTS = 500, RETREATS = 16, ENOUGH = 4 };

typedef struct Locks {
    uint32_t count;
    uintptr_t held[MAX_HELD];
    uintptr_t wanted; /* what it has found taken, `tries` times since it took or gave back another */
    uint32_t tries, retreats;
} Locks;

typedef struct {
    uintptr_t first, then;
    Locks with;     /* what else was held */
    Place place;    /* where the second one was taken */
    uint64_t block;
    uint32_t epoch; /* of the block: a barrier keeps its threads apart, */
    uint32_t phase; /* and one of the grid all threads */
    Fiber thread;   /* as it was then */
} Order;
static Order *orders;
static uint32_t order_count, phase;
static bool contended; /* the launch in which locks are found taken */
static uintptr_t locks[MAX_LOCKS]; /* words that have been taken and given back */

static bool given_back(uintptr_t address) {
    uint32_t at = (uint32_t)(address / 4 % MAX_LOCKS);
    for (uint32_t i = 0; i < MAX_LOCKS && locks[at]; i++, at = (at + 1) % MAX_LOCKS)
        if (locks[at] == address) return true;
    return false;
}

static void note_given_back(uintptr_t address) {
    uint32_t at = (uint32_t)(address / 4 % MAX_LOCKS);
    for (uint32_t i = 0; i < MAX_LOCKS; i++, at = (at + 1) % MAX_LOCKS) {
        if (locks[at] && locks[at] != address) continue;
        locks[at] = address;
        return;
    }
}

void locks_forget(void) {
    order_count = phase = 0;
    contended = false;
    for (uint32_t i = 0; i < MAX_LOCKS; i++) locks[i] = 0;
}

void locks_thread_begins(Fiber *fiber) {
    free(fiber->locks);
    fiber->locks = NULL;
}

void locks_grid_met(void) { phase++; }

/* The launch that has begun is the second one: locks are found taken. */
void tg_check_contend(void) { contended = true; }

/* ---- what threads do ------------------------------------------------------------------------------- */

static Order *order_of(const Fiber *me, uintptr_t first, uintptr_t then) {
    for (uint32_t i = 0; i < order_count; i++) {
        Order *o = &orders[i];
        if (o->first == first && o->then == then && o->block == tg_worker->block_number &&
            o->thread.public.linear == me->public.linear)
            return o;
    }
    return NULL;
}

static bool well_known(uintptr_t first, uintptr_t then) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < order_count; i++)
        count += orders[i].first == first && orders[i].then == then;
    return count >= ENOUGH;
}

static void note_orders(const Fiber *me, uintptr_t then, Place place) {
    if (!orders) orders = calloc(MAX_ORDERS, sizeof *orders);
    if (!orders) abort();
    for (uint32_t i = 0; i < me->locks->count; i++) {
        const uintptr_t first = me->locks->held[i];
        if (order_count == MAX_ORDERS || order_of(me, first, then)) continue;
        orders[order_count++] = (Order){.first = first, .then = then, .with = *me->locks,
                                        .place = place, .block = tg_worker->block_number,
                                        .epoch = tg_worker->epoch, .phase = phase, .thread = *me};
    }
}

static void take(uintptr_t address, Place place) {
    Fiber *me = current_fiber();
    if (!me->locks) me->locks = calloc(1, sizeof *me->locks);
    if (!me->locks) abort();
    Locks *mine = me->locks;
    if (!contended) note_orders(me, address, place);
    if (mine->count == MAX_HELD) mine->count--;
    mine->held[mine->count++] = address;
    mine->wanted = 0;
}

/* The current thread writes where it may hold a lock. */
void locks_give(uintptr_t address) {
    Locks *mine = current_fiber()->locks;
    for (uint32_t i = 0; mine && i < mine->count; i++) {
        if (mine->held[i] != address) continue;
        note_given_back(address);
        for (mine->count--; i < mine->count; i++) mine->held[i] = mine->held[i + 1];
        if (mine->wanted) mine->retreats++;
        mine->wanted = 0;
    }
}

/* What atomics.h calls: an exchange, perhaps a conditional one, has been made. */
void tg_exchanged(const void *address, int was_zero, int is_zero, const char *file, int line) {
    if (!tg_observer || !tg_worker || tg_following) return;
    if (was_zero && !is_zero) take((uintptr_t)address, (Place){file, line, 0});
    if (!was_zero && is_zero) locks_give((uintptr_t)address);
}

/* And before one that would take a lock: whether somebody else has it. */
int tg_contended(const void *address, const char *file, int line) {
    const Fiber *me = contended && tg_worker ? current_fiber() : NULL;
    Locks *mine = me ? me->locks : NULL;
    const uintptr_t then = (uintptr_t)address;
    if (!mine || !mine->count || mine->retreats == RETREATS) return 0;
    for (uint32_t i = 0; i < mine->count; i++)
        if (mine->held[i] == then || order_of(me, mine->held[i], then) ||
            well_known(mine->held[i], then))
            return 0;
    if (mine->wanted != then) mine->wanted = then, mine->tries = 0;
    if (++mine->tries < INSISTS) return 1;
    note_orders(me, then, (Place){file, line, 0});
    return 0;
}

/* ---- circles --------------------------------------------------------------------------------------- */

static bool comes_before(const Order *a, const Order *b) { /* by barriers of their warp */
    return b->thread.seen[a->thread.public.lane] >= a->thread.clock;
}

/* Whether two threads could be in these places at the same time. */
static bool may_meet(const Order *a, const Order *b) {
    if (a->phase != b->phase) return false;
    if (a->block == b->block) {
        if (a->epoch != b->epoch || a->thread.public.linear == b->thread.public.linear) return false;
        if (a->thread.public.warp == b->thread.public.warp &&
            (comes_before(a, b) || comes_before(b, a)))
            return false;
    }
    for (uint32_t i = 0; i < a->with.count; i++)
        for (uint32_t k = 0; k < b->with.count; k++)
            if (a->with.held[i] == b->with.held[k]) return false; /* the lock that both hold */
    return true;
}

/* A launch in which locks are found taken may end in the deadlock itself: nothing is given back then. */
static bool is_lock(uintptr_t address) { return contended || given_back(address); }

/* What was never given back is no lock, and what nobody holds who wants another is in no circle. */
static void keep_possible(void) {
    for (uint32_t before = order_count + 1; order_count < before;) {
        uint32_t kept = 0;
        before = order_count;
        for (uint32_t i = 0; i < before; i++) {
            bool comes = false, goes = false;
            for (uint32_t k = 0; k < before; k++)
                comes |= orders[k].then == orders[i].first, goes |= orders[k].first == orders[i].then;
            if (comes && goes && is_lock(orders[i].first) && is_lock(orders[i].then))
                orders[kept++] = orders[i];
        }
        order_count = kept;
    }
}

/* Continues a path to a circle of `length` orders, within so many steps. */
static bool close_circle(const Order **path, uint32_t found, uint32_t length, uint32_t *steps) {
    if (found == length) return path[length - 1]->then == path[0]->first;
    for (uint32_t i = 0; i < order_count && *steps; i++) {
        --*steps;
        bool fits = orders[i].first == path[found - 1]->then;
        for (uint32_t k = 0; k < found && fits; k++) fits = may_meet(path[k], &orders[i]);
        if (!fits) continue;
        path[found] = &orders[i];
        if (close_circle(path, found + 1, length, steps)) return true;
    }
    return false;
}

/* The length of the shortest circle; 0 if there is none. */
static uint32_t find_circle(const Order **path) {
    uint32_t steps = MAX_STEPS;
    keep_possible();
    for (uint32_t length = 2; length <= MAX_CIRCLE; length++)
        for (uint32_t i = 0; i < order_count; i++) {
            path[0] = &orders[i];
            if (close_circle(path, 1, length, &steps)) return length;
        }
    return 0;
}

static void tell(const Order *one, const Order *other, uint32_t length) {
    const Region *first = region_of(one->first), *then = region_of(one->then);
    if (!first || !then) return;
    const unsigned long a = (one->first - first->low) / first->element;
    const unsigned long b = (one->then - then->low) / then->element;
    const Index3 x = other->thread.public.block_idx, y = other->thread.public.thread_idx;
    Fiber thread = one->thread;
    Thread *now = tg_current;
    char back[120];
    if (length == 2)
        snprintf(back, sizeof back, "%s[%lu]: they may", first->name, a);
    else
        snprintf(back, sizeof back, "another one: %u of them may", length);
    tg_current = &thread.public;
    check_found(DEADLOCK, one->place, other->place, &other->thread,
                "it holds the lock %s[%lu] and takes %s[%lu], while block (%u,%u,%u) thread "
                "(%u,%u,%u) may hold %s[%lu] and take %s wait for each other for ever",
                first->name, a, then->name, b, x.x, x.y, x.z, y.x, y.y, y.z, then->name, b, back);
    tg_current = now;
}

/* After a launch that came to its end: whether there may be a circle. */
int tg_check_locks(void) {
    const Order *path[MAX_CIRCLE];
    return find_circle(path) > 0;
}

/* After the second launch: tell of the circle, and of nothing else. */
void tg_check_locks_insisted(void) {
    const Order *path[MAX_CIRCLE];
    const uint32_t length = find_circle(path);
    findings_forget();
    if (length) tell(path[0], path[1], length);
}
