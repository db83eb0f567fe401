/* Where the lanes of a warp meet: __syncwarp, shuffles, votes, and exchanges (mma, match, reduce).
 *
 * A lane says what it brings and whom it waits for (its mask), and waits.  The last one to come
 * computes everybody's result, and all of them go on.  Groups of lanes with disjoint masks may
 * wait at the same time.
 */
#include "runtime.h"

#include <string.h>

static const char *const CALL_NAMES[] = {"__syncwarp", "a shuffle", "a vote", "a warp-wide call"};

static Meeting *lane_meeting(uint32_t warp, uint32_t lane) {
    return &lane_fiber(warp, lane)->meeting;
}

/* The lanes that a mask names and that the block has; those that left can no longer come. */
static uint32_t awaited(uint32_t warp, uint32_t mask) {
    return mask & tg_worker->warps[warp].alive;
}

/* ---- the results, computed by the last lane to come ------------------------------------------ */

static void shuffle(uint32_t warp, uint32_t lanes) {
    Meeting given[WARP];
    for (uint32_t rest = lanes; rest; rest &= rest - 1)
        given[first_lane(rest)] = *lane_meeting(warp, first_lane(rest));
    for (uint32_t rest = lanes; rest; rest &= rest - 1) {
        Meeting *meeting = lane_meeting(warp, first_lane(rest));
        const uint32_t source = (uint32_t)meeting->source & (WARP - 1);
        if (lanes >> source & 1) {
            meeting->value = given[source].value;
            meeting->undefined = given[source].undefined;
            meeting->origin = given[source].origin;
            continue;
        }
        meeting->value = 0; /* on a GPU: undefined */
        if (tg_observer) tg_observer->absent(warp, first_lane(rest), source);
    }
}

static void vote(uint32_t warp, uint32_t lanes) {
    uint32_t ballot = 0, undefined = 0, origin = 0;
    for (uint32_t rest = lanes; rest; rest &= rest - 1) {
        const Meeting *meeting = lane_meeting(warp, first_lane(rest));
        if (meeting->value) ballot |= 1u << first_lane(rest);
        if (!meeting->undefined) continue;
        undefined |= 1u << first_lane(rest);
        origin = meeting->origin;
    }
    for (uint32_t rest = lanes; rest; rest &= rest - 1) {
        Meeting *meeting = lane_meeting(warp, first_lane(rest));
        meeting->value = ballot;
        meeting->undefined = undefined;
        meeting->origin = origin;
    }
}

static void exchange(uint32_t warp, uint32_t lanes) {
    for (uint32_t to = lanes; to; to &= to - 1) {
        lane_meeting(warp, first_lane(to))->value = lanes;
        const Meeting *taker = lane_meeting(warp, first_lane(to));
        for (uint32_t from = lanes; from; from &= from - 1) {
            const Meeting *giver = lane_meeting(warp, first_lane(from));
            char *to_place = (char *)taker->all + first_lane(from) * taker->bytes;
            memcpy(to_place, giver->mine, taker->bytes);
            if (tg_observer) tg_observer->copied(to_place, giver->mine, taker->bytes);
        }
    }
}

/* ---- meeting ---------------------------------------------------------------------------------- */

static void complain(FindingKind note, const Meeting *mine, Place other, const char *what) {
    tg_observer->found(WARP_SYNC | note, mine->place, other, NULL,
                "lane %u comes to %s with mask %08x, %s", tg_current->lane,
                CALL_NAMES[mine->call], mine->mask, what);
}

/* While checking: do all lanes make the same call? */
static void compare_calls(uint32_t warp, uint32_t lanes, const Meeting *mine) {
    for (uint32_t rest = lanes; rest; rest &= rest - 1) {
        const Meeting *other = lane_meeting(warp, first_lane(rest));
        const bool same_line = other->place.line == mine->place.line;
        if (other->call == mine->call && (same_line || mine->call == WARP_BARRIER)) continue;
        complain(0, mine, other->place, "but other lanes of the mask wait in another call");
        return;
    }
}

/* If all lanes that `mine` waits for are here, give the results and release them. */
static bool complete(uint32_t warp, const Meeting *mine) {
    const uint32_t lanes = awaited(warp, mine->mask);
    const Warp *p = &tg_worker->warps[warp];
    if (lanes & ~p->at_warp) return false;
    for (uint32_t rest = lanes; rest; rest &= rest - 1) {
        const Meeting *other = lane_meeting(warp, first_lane(rest));
        if (other->mask == mine->mask) continue;
        if (tg_observer)
            complain(0, mine, other->place, "but a lane that it names waits with another mask");
        return false;
    }
    if (tg_observer) {
        compare_calls(warp, lanes, mine);
        tg_observer->warp_meets(warp, lanes);
    }
    const WarpCall call = mine->call;
    if (call == WARP_SHUFFLE) shuffle(warp, lanes);
    if (call == WARP_VOTE) vote(warp, lanes);
    if (call == WARP_EXCHANGE) exchange(warp, lanes);
    if (tg_observer) tg_observer->warp_met(warp, lanes);
    schedule_release(warp, lanes);
    return true;
}

/* While checking: the current lane names one that has left.  Since Volta it is not waited for; but
 * it must not have come to this call, or made another one meanwhile, with a mask of its own. */
static void check_absent(const Fiber *left, const char *what) {
    const Fiber *me = current_fiber();
    const Meeting *mine = &me->meeting, *last = &left->meeting;
    const bool same = left->calls == me->calls && last->call == mine->call &&
                      last->place.line == mine->place.line;
    const bool apart = left->calls && !(last->mask >> me->public.lane & 1);
    if (apart && (same || last->number > mine->number))
        complain(0, mine, last->place, "but a lane that it names came with another mask, and left");
    else
        complain(NOTE, mine, (Place){0}, what);
}

/* While checking: a mask must name the caller, and be that of the others. */
static void check_mask(const Meeting *mine) {
    const uint32_t me = 1u << tg_current->lane, warp = tg_current->warp;
    const uint32_t gone = mine->mask & lanes_of_warp(tg_worker, warp) & ~current_warp()->alive;
    if (!(mine->mask & me)) complain(0, mine, (Place){0}, "which does not name the lane itself");
    for (uint32_t rest = gone; rest; rest &= rest - 1)
        check_absent(lane_fiber(warp, first_lane(rest)),
                     "which names lanes that have left the kernel");
}

static void meet(void) {
    Fiber *me = current_fiber();
    const uint32_t warp = me->public.warp, lane = 1u << me->public.lane;
    me->calls++;
    me->meeting.number = ++tg_worker->calls;
    if (tg_observer) check_mask(&me->meeting);
    me->meeting.mask |= lane;
    current_warp()->at_warp |= lane;
    if (!complete(warp, &me->meeting)) {
        schedule_yield();
        return;
    }
    tg_worker->warps[warp].ready &= ~lane; /* this lane goes on at once */
    if (!(tg_worker->warps[warp].ready | tg_worker->warps[warp].fresh))
        tg_worker->busy &= ~(1u << warp);
}

/* A lane has left the kernel: others may have been waiting for nobody else. */
void warp_lane_left(uint32_t warp) {
    Warp *p = &tg_worker->warps[warp];
    for (uint32_t rest = p->at_warp; rest; rest &= rest - 1) {
        Fiber *fiber = lane_fiber(warp, first_lane(rest));
        if (!(fiber->meeting.mask >> tg_current->lane & 1)) continue;
        Thread *left = tg_current;
        tg_current = &fiber->public;
        if (tg_observer)
            check_absent((Fiber *)left, "which names lanes that leave the kernel");
        const bool done = complete(warp, &fiber->meeting);
        tg_current = left;
        if (done) return;
    }
}

/* ---- what warp.h calls -------------------------------------------------------------------------- */

void tg_warp_barrier(unsigned mask, const char *file, int line) {
    current_fiber()->meeting =
        (Meeting){.call = WARP_BARRIER, .mask = mask, .place = {file, line, 0}};
    meet();
}

unsigned long long tg_shuffle(unsigned mask, unsigned long long value, int source,
                              const char *file, int line) {
    Fiber *me = current_fiber();
    me->meeting = (Meeting){.call = WARP_SHUFFLE, .mask = mask, .place = {file, line, 0},
                            .value = value, .source = source};
    if (tg_observer) tg_observer->lane_gives(&me->meeting);
    meet();
    if (tg_observer) tg_observer->lane_takes(&me->meeting);
    return me->meeting.value;
}

unsigned tg_ballot(unsigned mask, int predicate, const char *file, int line) {
    Fiber *me = current_fiber();
    me->meeting = (Meeting){.call = WARP_VOTE, .mask = mask, .place = {file, line, 0},
                            .value = predicate != 0};
    if (tg_observer) tg_observer->lane_gives(&me->meeting);
    meet();
    if (tg_observer) tg_observer->lane_takes(&me->meeting);
    return (unsigned)me->meeting.value;
}

/* All lanes of the mask see what each of them brought: 32 times `bytes` bytes, by lane.  Gives the
 * lanes that have come. */
unsigned tg_warp_exchange(unsigned mask, const void *mine, unsigned bytes, void *all32,
                      const char *file, int line) {
    current_fiber()->meeting =
        (Meeting){.call = WARP_EXCHANGE, .mask = mask, .place = {file, line, 0}, .mine = mine,
                  .bytes = bytes, .all = all32};
    meet();
    return (unsigned)current_fiber()->meeting.value;
}

/* The lanes that are at this place together: those that come here before the warp has to wait. */
unsigned tg_active_mask(const char *file, int line) {
    Fiber *me = current_fiber();
    me->meeting = (Meeting){.place = {file, line, 0}};
    current_warp()->gathering |= 1u << me->public.lane;
    schedule_yield();
    return (unsigned)me->meeting.value;
}

unsigned tg_lane(void) { return tg_current->lane; }
