/* cp.async: copies from global to shared memory that run beside the kernel.
 *
 * A GPU may finish such a copy at any moment before the wait for it.  Here it happens at the wait
 * and never before, so that a missing wait, or one for the wrong group, shows.
 */
#include "runtime.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    void *to;
    uint32_t size, group;
    Place place;
    char bytes[16]; /* read when the copy was asked for: the source must not change anyway */
} Copy;

typedef struct CopyQueue {
    uint32_t first, count, room; /* copies first .. count-1 have not been made */
    uint32_t group;              /* number of the group that is being filled */
    Copy *copies;
} CopyQueue;

void tg_copy_later(void *shared, const void *global, unsigned size, const char *file, int line) {
    Fiber *me = current_fiber();
    const Place place = {file, line, 0};
    if (tg_observer) tg_observer->access(global, size, READ, place);
    if (!me->copies) me->copies = calloc(1, sizeof *me->copies);
    CopyQueue *queue = me->copies;
    if (queue && queue->count == queue->room) {
        const uint32_t room = queue->room ? 2 * queue->room : 16;
        Copy *more = realloc(queue->copies, room * sizeof *more);
        if (more) queue->copies = more, queue->room = room;
    }
    if (!queue || queue->count == queue->room) abort(); /* no memory for a few bytes */
    Copy *copy = &queue->copies[queue->count++];
    *copy = (Copy){.to = shared, .size = size, .group = queue->group, .place = place};
    memcpy(copy->bytes, global, size);
}

void tg_copy_commit(void) {
    if (!current_fiber()->copies) current_fiber()->copies = calloc(1, sizeof(CopyQueue));
    if (current_fiber()->copies) current_fiber()->copies->group++;
}

/* Make all copies but those of the last `groups_left` groups. */
void tg_copy_wait(unsigned groups_left) {
    CopyQueue *queue = current_fiber()->copies;
    if (!queue) return;
    while (queue->first < queue->count) {
        const Copy *copy = &queue->copies[queue->first];
        if (copy->group + groups_left >= queue->group) break;
        if (tg_observer) tg_observer->access(copy->to, copy->size, WRITE, copy->place);
        memcpy(copy->to, copy->bytes, copy->size);
        queue->first++;
    }
    if (queue->first == queue->count) queue->first = queue->count = 0;
}

void copies_drop(Fiber *fiber) {
    if (!fiber->copies) return;
    free(fiber->copies->copies);
    free(fiber->copies);
    fiber->copies = NULL;
}
