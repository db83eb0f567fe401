/* Memory of a program under the checker: what cudaMalloc gave, and the heap of its kernels.
 *
 * It lives longer than a launch, and so does what is known of its bytes: the program keeps their state
 * (host/runtime/memory.c).
 */
#include "check.h"

#include <stdlib.h>
#include <string.h>

/* `state` says which bytes have values: NULL if all have. */
void tg_check_memory(uintptr_t low, size_t bytes, const char *name, uint32_t element,
                     uint32_t flags, uint8_t *state) {
    if (!element) flags |= OPEN_ELEMENT;
    region_add(low, bytes, name, element, flags, !state, state);
}

/* ---- the heap ------------------------------------------------------------------------------------ */

/* Who used these bytes before has given them back: nothing is known of them. */
static void begin_anew(uintptr_t low, size_t bytes, uint8_t state) {
    Region *r = region_of(low);
    if (!r) return; /* there are more arrays than the checker can keep */
    const size_t first = low - r->low;
    memset(r->state + first, state, bytes);
    for (size_t word = first / 4; word * 4 < first + bytes; word++) {
        r->cells[word] = (Cell){0};
        if (!r->parts) continue;
        free(r->parts[word]);
        r->parts[word] = NULL;
    }
}

void check_heap_taken(uintptr_t low, size_t bytes) { begin_anew(low, bytes, TAKEN); }
void check_heap_given(uintptr_t low, size_t bytes) { begin_anew(low, bytes, 0); }

/* How far an address of the heap is behind what somebody has taken. */
static size_t distance_behind(const Region *r, uintptr_t address) {
    const uint8_t *state = r->state;
    size_t at = address - r->low;
    while (at && !(state[at] & TAKEN)) at--;
    return address - r->low - at;
}

/* ---- one access ------------------------------------------------------------------------------------ */

/* Whether a thread may not touch these bytes, and has been told so. */
bool memory_refuses(Region *r, uintptr_t address, uint32_t size, const char *verb, Place place) {
    if (r->flags & OPEN_ELEMENT) r->element = size; /* a first access tells the size of an element */
    r->flags &= ~(uint32_t)OPEN_ELEMENT;
    if (r->flags & GIVEN_BACK) {
        found_at(OUT_OF_BOUNDS, place, (Place){0}, r, address,
                 "%s of %u bytes of %s, which was given back with cudaFree", verb, size, r->name);
        return true;
    }
    if (!(r->flags & HEAP)) return false;
    const uint8_t *state = r->state + (address - r->low);
    uint32_t taken = 0;
    while (taken < size && state[taken] & TAKEN) taken++;
    if (taken == size) return false;
    const size_t behind = distance_behind(r, address + taken);
    check_found(OUT_OF_BOUNDS, place, (Place){0}, NULL,
                "%s of %u bytes on the heap of the device that malloc and new have not given, or that "
                "were given back; the last byte that is in use lies %lu before", verb, size,
                (unsigned long)behind);
    return true;
}
