/* Where an access meets one that nothing orders before it: a race, and what is told of it.
 *
 *     the same value    a store is looked at once it is done, which is when the next access comes
 *     a look            the plain read with which a loop around atomicCAS begins is no race
 */
#include "check.h"

#include <stdlib.h>
#include <string.h>

/* A store that races with one before it: once it is done, is there what was there? */
uint32_t clash_stored; /* the number of the finding, */
static struct { uint32_t size; const void *address; char before[64]; } stored;

void clash_settle(void) {
    if (!memcmp(stored.address, stored.before, stored.size)) found_alike(clash_stored);
    clash_stored = 0;
}

static void tell_race(const Region *r, uintptr_t address, uint32_t size, uint32_t how, Place place,
                      uint32_t site, Conflict c) {
    const Worker *w = tg_worker;
    const Index3 b = w->launch->block, g = w->launch->grid;
    const uint32_t t = c.earlier.thread, n = c.earlier.block - 1;
    const bool same_block = n == w->block_number;
    const Index3 thread = {t % b.x, t / b.x % b.y, t / b.x / b.y};
    const Index3 block = {n % g.x, n / g.x % g.y, n / g.x / g.y};
    if (found_at(RACE, place, tg_site(c.earlier.site), r, address,
                 "%s (%s after %s): thread (%u,%u,%u) of %s (%u,%u,%u) touched it, and nothing "
                 "orders the two",
                 r->flags & SHARED_REGION ? "race on shared memory" : "race", access_verb(how),
                 c.what, thread.x, thread.y, thread.z, same_block ? "the same block" : "block",
                 block.x, block.y, block.z))
        found_other(block, thread);
    if (how & c.earlier.how & WRITE && c.last && size <= sizeof stored.before) {
        clash_stored = found_number(), stored.size = size, stored.address = (const void *)address;
        memcpy(stored.before, stored.address, size);
    }
    if (!found_number()) return;
    const bool after = !(how & (WRITE | ATOMIC | VOLATILE)) && c.earlier.how & ATOMIC && size <= 8;
    const bool before = how & ATOMIC && !(c.earlier.how & (WRITE | ATOMIC | VOLATILE));
    found_look(found_number(), after ? site : before ? c.earlier.site : 0);
    if (!after) return;
    Fiber *me = current_fiber();
    me->look.found = found_number(), me->look.address = address, me->look.size = size;
    me->look.site = site, me->look.epoch = w->epoch, me->look.value = 0;
    memcpy(&me->look.value, (const void *)address, size);
}

/* Some bits of what lies in a word, or in a byte, beside the flags of an access. */
static uint32_t value_bits(uintptr_t address, bool whole) {
    uint32_t value = 0;
    memcpy(&value, (const void *)address, whole ? 4 : 1);
    return value * 0x9e3779b1u >> (32 - 16 + VALUE_SHIFT);
}

/* Before an atomicCAS.  The guide's loop begins with a plain read: this one, if what it gave is
 * what is expected now.  Such a loop may be left after the read, as there is nothing to do: so what
 * is forgiven is a place in the source, unless a thread goes on to change the word otherwise. */
void tg_before_swap(const void *pointer, const void *expected, unsigned size) {
    const uintptr_t address = (uintptr_t)pointer;
    Region *r = tg_observer && tg_current ? region_of(address) : NULL;
    if (!r || r->high - address < size) return;
    r->flags |= SWAPPED;
    Fiber *me = current_fiber();
    if (me->look.found && me->look.address == address && me->look.size == size &&
        me->look.epoch == tg_worker->epoch && !memcmp(&me->look.value, expected, size)) {
        site_swaps(me->look.site);
        me->look.found = 0;
    }
    for (size_t i = 0; i < size; i++) {
        const size_t at = address - r->low + i, word = at / 4;
        const uintptr_t bytes = (uintptr_t)expected + i;
        if (r->parts && r->parts[word])
            race_expected(&r->parts[word][at % 4], value_bits(bytes, false));
        else if (at % 4 == 0 && size - i >= 4)
            race_expected(&r->cells[word], value_bits(bytes, true));
    }
}

/* Visit the cells of all words that an access touches; words touched in parts have one a byte. */
void clash_look(Region *r, uintptr_t address, uint32_t size, uint32_t how, Place place,
                uint32_t site) {
    const size_t first = address - r->low, end = first + size;
    const bool looks = !(how & (WRITE | ATOMIC | VOLATILE));
    if (!looks && current_fiber()->look.found && address == current_fiber()->look.address) {
        found_look(current_fiber()->look.found, 0);
        current_fiber()->look.found = 0;
    }
    const bool keeps = looks && r->flags & SWAPPED;
    Conflict conflict = {{0}, NULL, false};
    for (size_t word = first / 4; word * 4 < end; word++) {
        const size_t from = word * 4 < first ? first - word * 4 : 0;
        const size_t to = end - word * 4 < 4 ? end - word * 4 : 4;
        const bool whole = from == 0 && to == 4;
        Cell *parts = r->parts ? r->parts[word] : NULL;
        if (whole && !parts) {
            const uint32_t bits = keeps ? value_bits(r->low + word * 4, true) << VALUE_SHIFT : 0;
            if (race_visit(&r->cells[word], how | bits, site, &conflict)) break;
            continue;
        }
        if (!parts) { /* the first access to a part: the history of the word is that of each byte */
            if (!r->parts) r->parts = region_zeros(region_words(r) * sizeof *r->parts);
            parts = r->parts[word] = malloc(4 * sizeof *parts);
            if (!parts) abort();
            for (int i = 0; i < 4; i++) parts[i] = r->cells[word];
        }
        for (size_t i = from; i < to; i++) {
            const uintptr_t byte = r->low + word * 4 + i;
            const uint32_t bits = keeps ? value_bits(byte, false) << VALUE_SHIFT : 0;
            if (race_visit(&parts[i], how | bits, site, &conflict)) break;
        }
        if (conflict.what) break;
    }
    if (conflict.what) tell_race(r, address, size, how, place, site, conflict);
}
