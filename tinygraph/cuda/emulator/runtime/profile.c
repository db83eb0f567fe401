/* How well a kernel uses memory: sectors of each request (coalescing), and bank conflicts.
 *
 * A GPU serves the accesses of a warp together: 32 lanes that execute the same load make one
 * request.  Fibers run one after the other, so the n-th execution of a site by one lane since the
 * last barrier of the block is put together with the n-th of the other lanes of its warp.
 */
#include "check.h"

#include <stdlib.h>
#include <string.h>

bool tg_profiling;

typedef struct {
    uint32_t site, shared, how, size;
    uint64_t requests, sectors, least_sectors, wavefronts, least_wavefronts;
} Counter;

typedef struct {
    uint32_t lanes; /* bit by bit: who takes part */
    uintptr_t address[WARP]; /* by lane: the order in which fibers came here says nothing */
} Request;

typedef struct Line {
    Counter counter;
    uint32_t times[MAX_WARPS][WARP]; /* how often each lane was here since the last barrier */
    struct { Request *list; uint32_t count, room; } requests[MAX_WARPS];
    struct Line *next; /* of the same site, with another kind of access: cp.async has two */
} Line;

enum { MAX_LINES = 1 << 14 };
static Line *lines[MAX_LINES]; /* by site */
static Line *used[MAX_LINES];
static uint32_t used_count;

static Line *line_of(uint32_t site, uint32_t size, uint32_t how, bool shared) {
    Line **place = &lines[site];
    for (; *place; place = &(*place)->next) {
        const Counter *c = &(*place)->counter;
        if (c->shared == shared && c->size == size && c->how == how) return *place;
    }
    if (used_count == MAX_LINES) return NULL;
    Line *line = *place = used[used_count++] = calloc(1, sizeof *line);
    if (!line) abort();
    line->counter = (Counter){.site = site, .shared = shared, .size = size, .how = how};
    return line;
}

void profile_access(uint32_t site, uintptr_t address, uint32_t size, uint32_t how, bool shared) {
    Line *line = line_of(site, size, how & (WRITE | ATOMIC), shared);
    if (!line) return;
    const uint32_t warp = tg_current->warp, lane = tg_current->lane;
    const uint32_t time = line->times[warp][lane]++;
    if (time >= line->requests[warp].room) {
        const uint32_t room = time < 8 ? 8 : 2 * time;
        line->requests[warp].list = realloc(line->requests[warp].list, room * sizeof(Request));
        if (!line->requests[warp].list) abort();
        line->requests[warp].room = room;
    }
    if (time >= line->requests[warp].count) {
        line->requests[warp].count = time + 1;
        line->requests[warp].list[time].lanes = 0;
    }
    Request *request = &line->requests[warp].list[time];
    request->address[lane] = address;
    request->lanes |= 1u << lane;
}

/* The addresses of those who take part, in the order of their lanes; how many are they? */
static uint32_t addresses_of(const Request *request, uintptr_t *out) {
    uint32_t count = 0;
    for (uint32_t lane = 0; lane < WARP; lane++)
        if (request->lanes >> lane & 1) out[count++] = request->address[lane];
    return count;
}

static int by_value(const void *a, const void *b) {
    const uintptr_t x = *(const uintptr_t *)a, y = *(const uintptr_t *)b;
    return x < y ? -1 : x > y;
}

/* Global memory is moved in sectors of 32 bytes. */
static void count_sectors(Counter *c, const Request *request) {
    enum { SECTOR = 32 };
    uintptr_t address[WARP];
    const uint32_t lanes = addresses_of(request, address);
    qsort(address, lanes, sizeof *address, by_value);
    uintptr_t next_sector = 0;
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < lanes; i++) {
        const uintptr_t first = address[i] / SECTOR;
        const uintptr_t last = (address[i] + c->size - 1) / SECTOR;
        if (i == 0 || address[i] != address[i - 1]) bytes += c->size;
        const uintptr_t from = first > next_sector ? first : next_sector;
        if (last >= from) c->sectors += last - from + 1;
        if (last >= next_sector) next_sector = last + 1;
    }
    c->least_sectors += (bytes + SECTOR - 1) / SECTOR;
}

/* Shared memory has 32 banks of 4 bytes.  Lanes that want different words of one bank wait for
 * each other; wide accesses are served for half or a quarter of the lanes at a time. */
static void count_wavefronts(Counter *c, const Request *request) {
    enum { BANKS = 32 };
    const uint32_t together = c->size >= 16 ? 8 : c->size == 8 ? 16 : 32;
    uintptr_t address[WARP];
    const uint32_t lanes = addresses_of(request, address);
    for (uint32_t begin = 0; begin < lanes; begin += together) {
        uintptr_t words[4 * WARP];
        uint32_t count = 0, depth[BANKS] = {0}, most = 0;
        for (uint32_t i = begin; i < lanes && i < begin + together; i++)
            for (uint32_t byte = 0; byte < c->size && count < 4 * WARP; byte += 4)
                words[count++] = (address[i] + byte) / 4;
        qsort(words, count, sizeof *words, by_value);
        for (uint32_t i = 0; i < count; i++) {
            if (i && words[i] == words[i - 1]) continue; /* the same word is sent to all of them */
            const uint32_t waiting = ++depth[words[i] % BANKS];
            if (waiting > most) most = waiting;
        }
        c->wavefronts += most;
        c->least_wavefronts++;
    }
}

/* The block comes to a barrier or to its end: add up its requests. */
void profile_barrier(void) {
    for (uint32_t i = 0; i < used_count; i++) {
        Line *line = used[i];
        for (uint32_t warp = 0; warp < MAX_WARPS; warp++) {
            for (uint32_t k = 0; k < line->requests[warp].count; k++) {
                Request *request = &line->requests[warp].list[k];
                line->counter.requests++;
                if (line->counter.shared)
                    count_wavefronts(&line->counter, request);
                else
                    count_sectors(&line->counter, request);
            }
            line->requests[warp].count = 0;
        }
        memset(line->times, 0, sizeof line->times);
    }
}

/* ---- floating-point operations -------------------------------------------------------------------
 *
 * A build for profiling calls a hook at the start of each basic block; how many operations lie in
 * that block is counted in the assembly text (emulator/operations.py).
 */

enum { MAX_BLOCKS = 1 << 14 };
static struct { uintptr_t pc; uint64_t times; } blocks[MAX_BLOCKS];

void profile_code(uintptr_t pc) {
    uint32_t i = (uint32_t)(pc * 0x9e3779b97f4a7c15ull >> 50) % MAX_BLOCKS;
    for (int tries = 0; tries < 64; tries++, i = (i + 1) % MAX_BLOCKS) {
        if (!blocks[i].pc) blocks[i].pc = pc;
        if (blocks[i].pc != pc) continue;
        blocks[i].times++;
        return;
    }
}

/* ---- what Python reads ---------------------------------------------------------------------------- */

void profile_launch_begins(void) {
    for (uint32_t i = 0; i < used_count; i++) {
        for (uint32_t warp = 0; warp < MAX_WARPS; warp++) free(used[i]->requests[warp].list);
        lines[used[i]->counter.site] = NULL;
        free(used[i]);
    }
    used_count = 0;
    memset(blocks, 0, sizeof blocks);
}

/* The counters, one by one; returns 0 after the last. */
int tg_profile_line(uint32_t i, Counter *out) {
    if (i >= used_count) return 0;
    *out = used[i]->counter;
    return 1;
}

int tg_profile_block(uint32_t i, uintptr_t *pc, uint64_t *times) {
    if (i >= MAX_BLOCKS) return 0;
    *pc = blocks[i].pc;
    *times = blocks[i].times;
    return 1;
}
