/* Guards: the small arrays of a plain launch lie between pages that nobody may touch.
 *
 * An index that goes astray would otherwise meet whatever the process keeps beside the array, and
 * Python would die of it later, somewhere else.  So the arrays are copied to places of their own,
 * and what a kernel may write comes back after the launch:
 *
 *     no access | room, its end marked | the array | at most 15 bytes, marked | no access
 *
 * A step into "no access" is a fault (faults.c); one into a mark is noticed after the launch.
 * Copying large arrays would cost more than many launches: they stay where they are.
 */
#include "runtime.h"

#include <string.h>
#include <sys/mman.h>

enum { PAGE = 64 * 1024, /* the largest that a processor has */ BEFORE = 1024, MARK = 0xa5 };
static const size_t STRIDE = (size_t)16 << 30; /* what an int can index lies on both sides */

/* The places, made at the first launch of a worker; NULL without that much address space. */
static char *places(Worker *w) {
    if (w->places) return w->places == MAP_FAILED ? NULL : w->places;
    w->places = mmap(NULL, GUARDED_ARRAYS * STRIDE, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    for (size_t i = 0; w->places != MAP_FAILED && i < GUARDED_ARRAYS; i++) {
        char *middle = w->places + i * STRIDE + STRIDE / 2;
        if (!mprotect(middle - GUARDED_BYTES - PAGE, GUARDED_BYTES + PAGE, PROT_READ | PROT_WRITE))
            continue;
        munmap(w->places, GUARDED_ARRAYS * STRIDE);
        w->places = MAP_FAILED;
    }
    return w->places == MAP_FAILED ? NULL : w->places;
}

void guards_free(Worker *w) {
    if (w->places && w->places != MAP_FAILED) munmap(w->places, GUARDED_ARRAYS * STRIDE);
}

/* Add an array to the list; arrays that share memory become one. */
static bool add(Guards *g, GuardedArray new) {
    for (uint32_t i = 0; i < g->count;) {
        const GuardedArray old = g->arrays[i];
        if (old.low >= new.high || new.low >= old.high) {
            i++;
            continue;
        }
        if (old.low < new.low) new.low = old.low;
        if (old.high > new.high) new.high = old.high;
        new.written |= old.written;
        g->arrays[i] = g->arrays[--g->count];
        i = 0;
    }
    if (g->count == GUARDED_ARRAYS) return false;
    g->arrays[g->count++] = new;
    return true;
}

static const GuardedArray *around(const Guards *g, uintptr_t address) {
    for (uint32_t i = 0; i < g->count; i++)
        if (address >= g->arrays[i].low && address < g->arrays[i].high) return &g->arrays[i];
    return NULL;
}

/* How many marked bytes lie between the array and the end of its place: less than 16, so that the
 * copy is aligned as the array is. */
static char *place_of(char *end, const GuardedArray *a) {
    char *copy = end - (a->high - a->low);
    return copy - (((uintptr_t)copy - a->low) & 15);
}

/* Put copies between guards and their addresses into `packed`: `count` arguments, and behind them
 * for each array how many bytes it has, times two, plus one if the kernel may write it. */
void guards_enter(Guards *g, Worker *w, uint64_t *packed, uint32_t count) {
    g->count = 0;
    g->packed = packed;
    g->arguments = count;
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t size = packed[count + i];
        const uintptr_t low = packed[i];
        if (size >> 1 && !add(g, (GuardedArray){low, low + (size >> 1), NULL, size & 1})) {
            g->count = 0;
            return;
        }
    }
    size_t room = GUARDED_BYTES;
    g->places = g->count ? places(w) : NULL;
    for (uint32_t i = 0; g->places && i < g->count; i++) {
        GuardedArray *a = &g->arrays[i];
        const size_t bytes = a->high - a->low;
        if (bytes > room) continue;
        room -= bytes;
        char *end = g->places + i * STRIDE + STRIDE / 2;
        a->copy = place_of(end, a);
        memset(a->copy - BEFORE, MARK, BEFORE);
        memcpy(a->copy, (const char *)a->low, bytes);
        memset(a->copy + bytes, MARK, (size_t)(end - a->copy) - bytes);
    }
    for (uint32_t i = 0; i < count; i++) {
        const GuardedArray *a = packed[count + i] ? around(g, packed[i]) : NULL;
        if (!a || !a->copy) continue;
        packed[i] = (uintptr_t)a->copy + (packed[i] - a->low);
    }
}

/* The argument beside which an address lies, and how many bytes from its begin; or -1. */
int32_t guards_find(const Guards *g, uintptr_t address, int64_t *offset) {
    const uintptr_t first = (uintptr_t)g->places;
    if (!first || address - first >= GUARDED_ARRAYS * STRIDE) return -1;
    const uint32_t place = (uint32_t)((address - first) / STRIDE);
    if (place >= g->count || !g->arrays[place].copy) return -1;
    const uintptr_t copy = (uintptr_t)g->arrays[place].copy;
    for (uint32_t i = 0; i < g->arguments; i++) {
        const bool inside = g->packed[i] - copy < g->arrays[place].high - g->arrays[place].low;
        if (!g->packed[g->arguments + i] || !inside) continue;
        *offset = (int64_t)(address - g->packed[i]);
        return (int32_t)i;
    }
    return -1;
}

static const char *touched(const char *mark, const char *end) {
    const size_t bytes = (size_t)(end - mark);
    if (!bytes || (*mark == (char)MARK && !memcmp(mark, mark + 1, bytes - 1))) return NULL;
    while (*mark == (char)MARK) mark++;
    return mark;
}

/* Bring back what may have been written.  Returns where a mark was overwritten, or 0. */
uintptr_t guards_leave(const Guards *g) {
    uintptr_t overwritten = 0;
    for (uint32_t i = 0; i < g->count; i++) {
        const GuardedArray *a = &g->arrays[i];
        if (!a->copy) continue;
        const size_t bytes = a->high - a->low;
        const char *behind = touched(a->copy + bytes, g->places + i * STRIDE + STRIDE / 2);
        const char *before = touched(a->copy - BEFORE, a->copy);
        if (behind || before) overwritten = (uintptr_t)(behind ? behind : before);
        if (a->written) memcpy((char *)a->low, a->copy, bytes);
    }
    return overwritten;
}
