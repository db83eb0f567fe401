/* Launches one kernel `(float *y, int n)` as Python would: for tests under qemu, without a Python.
 *
 *     driver fast|checked|profiled BLOCKS THREADS N
 *
 * It prints what a launch tells: the failure, the findings, the counts, the array.
 */
#define _GNU_SOURCE
#include "runtime.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* As in check.c. */
typedef struct {
    int32_t kind, has_index;
    Place place, other;
    uintptr_t path[8], other_path[8];
    int64_t index;
    Index3 block, thread;
    char array[64];
    char text[400];
} Found;

int tg_launch(Entry, const char *, uint32_t, const uint32_t[3], const uint32_t[3], uint32_t, int,
              double, const uintptr_t[2], Failure *);
int tg_module(uintptr_t, uintptr_t[3]);
void tg_check_begin(int, uintptr_t, uintptr_t);
void *tg_far_memory(size_t);
void tg_check_region(uintptr_t, size_t, const char *, uint32_t, uint32_t, int);
void tg_check_outputs(void);
uint32_t tg_check_findings(const Found **);
uint32_t tg_finding_size(void);
int tg_profile_block(uint32_t, uintptr_t *, uint64_t *);
void tg_entry_0(const char *);

static uintptr_t module[3]; /* load address, first and last byte */

static void print_findings(void) {
    const Found *found;
    const uint32_t count = tg_check_findings(&found);
    for (uint32_t i = 0; i < count; i++) {
        const Place at = found[i].place; /* none: it was stopped in the run time; the last access */
        const Place place = at.line || at.pc ? at : found[i].other;
        printf("finding %d line %d pc %lu array %s index %ld thread %u: %s\n", found[i].kind,
               place.line, place.pc ? (unsigned long)(place.pc - module[0]) : 0, found[i].array,
               (long)found[i].index, found[i].thread.x, found[i].text);
    }
}

static void print_operations(void) {
    const uint64_t *rows = dlsym(RTLD_DEFAULT, "tg_flops_count");
    const uint64_t *table = dlsym(RTLD_DEFAULT, "tg_flops");
    uint64_t total = 0, times;
    uintptr_t pc;
    for (uint32_t i = 0; tg_profile_block(i, &pc, &times); i++)
        for (uint64_t k = 0; pc && k < *rows; k++)
            if (table[2 * k] == pc) total += table[2 * k + 1] * times;
    printf("operations %lu\n", (unsigned long)total);
}

int main(int count, char **words) {
    if (count != 5 || tg_finding_size() != sizeof(Found)) return 3;
    const bool checked = strcmp(words[1], "fast") != 0, profiled = !strcmp(words[1], "profiled");
    const uint32_t grid[3] = {(uint32_t)atoi(words[2]), 1, 1};
    const uint32_t block[3] = {(uint32_t)atoi(words[3]), 1, 1};
    const int n = atoi(words[4]);
    const size_t bytes = (size_t)n * sizeof(float);
    tg_module((uintptr_t)tg_entry_0, module);
    float *y = checked ? tg_far_memory(bytes) : calloc(1, bytes);
    struct { float *y; int64_t n; } packed = {y, n};
    Failure failure;
    enum { MUST_BE_WRITTEN = 4 };
    if (checked) {
        tg_check_begin(profiled, module[1], module[2]);
        tg_check_region((uintptr_t)y, bytes, "y", sizeof(float), MUST_BE_WRITTEN, 1);
    }
    const int kind = tg_launch(tg_entry_0, (const char *)&packed, 0, grid, block, 0, 2, 2.0,
                               module + 1, &failure);
    if (checked && !kind) tg_check_outputs();
    if (checked) print_findings();
    if (profiled) print_operations();
    if (kind)
        printf("failure %d line %d pc %lu: %s\n", kind, failure.line,
               failure.pc ? (unsigned long)(failure.pc - module[0]) : 0, failure.text);
    printf("y");
    for (int i = 0; i < n; i++) printf(" %.9g", y[i]);
    printf("\n");
    return 0;
}
