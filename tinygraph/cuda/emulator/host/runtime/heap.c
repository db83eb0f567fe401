/* The heap of the device: what `malloc` and `new` of a kernel give, and `free` and `delete` take back.
 *
 *     | 32 bytes: Head | bytes of the kernel | 16 bytes or more that belong to nobody |
 *
 * It is one piece of memory, as large as cudaLimitMallocHeapSize says at the first use, and lives as
 * long as the program.  What is given back goes to a list of its size, a power of two.  Under the
 * checker each byte says whether it is TAKEN, so that an index beyond what `malloc` gave is met.
 *
 * The host calls these functions, too: `new` is the same word in a function of either side.
 */
#define _GNU_SOURCE
#include "host.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIZES = 48, BEHIND = 16 };
static const uint64_t MARK = 0x7467206865617020, FREE_MARK = 0x7467206672656520;

typedef struct Head {
    uint64_t mark;
    size_t bytes;      /* that were asked for */
    uint32_t size;     /* log2 of the bytes with head and end */
    struct Head *next; /* of those given back */
} Head;
_Static_assert(sizeof(Head) == 32, "what follows a head is aligned like its memory");

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* held for moments: a fiber never waits here */
static char *low, *end, *fresh; /* the heap, and where it has not been used yet */
static Head *first[SIZES];

static bool of_a_kernel(void) { return tg_worker && tg_worker->in_kernel; }

/* ---- taking -------------------------------------------------------------------------------------- */

static bool begin(void) {
    size_t bytes = 0;
    cudaError_t cudaDeviceGetLimit(size_t *, enum cudaLimit);
    cudaDeviceGetLimit(&bytes, cudaLimitMallocHeapSize);
    if (!low) low = memory_heap(bytes);
    if (!low) return false;
    if (!end) end = low + bytes, fresh = low;
    return true;
}

static void *take(size_t bytes) {
    uint32_t size = 6;
    while (size < SIZES && bytes > ((size_t)1 << size) - sizeof(Head) - BEHIND) size++;
    if (size == SIZES || !begin()) return NULL;
    Head *head = first[size];
    if (head) {
        first[size] = head->next;
    } else {
        if (((size_t)1 << size) > (size_t)(end - fresh)) return NULL;
        head = (Head *)fresh;
        fresh += (size_t)1 << size;
    }
    *head = (Head){.mark = MARK, .bytes = bytes, .size = size};
    if (host_checks()) check_heap_taken((uintptr_t)(head + 1), bytes);
    return head + 1;
}

static void *take_locked(size_t bytes) {
    pthread_mutex_lock(&lock);
    void *place = take(bytes);
    pthread_mutex_unlock(&lock);
    return place;
}

/* ---- giving back --------------------------------------------------------------------------------- */

static Head *head_of(const void *pointer) {
    const char *at = pointer;
    if (!low || at < low + sizeof(Head) || at >= fresh || (uintptr_t)at % 16) return NULL;
    Head *head = (Head *)at - 1;
    return head->mark == MARK || head->mark == FREE_MARK ? head : NULL;
}

static void give(void *pointer, const char *word, Place place) {
    pthread_mutex_lock(&lock);
    Head *head = head_of(pointer);
    const bool taken = head && head->mark == MARK;
    if (taken) {
        if (host_checks()) check_heap_given((uintptr_t)pointer, head->bytes);
        head->mark = FREE_MARK;
        head->next = first[head->size];
        first[head->size] = head;
    }
    pthread_mutex_unlock(&lock);
    if (taken || !pointer) return;
    char text[160];
    snprintf(text, sizeof text, "%s of %p, which %s", word, pointer,
             head ? "was given back already" : "neither malloc nor new has given to a kernel");
    if (host_checks()) {
        check_found(OUT_OF_BOUNDS, place, (Place){0}, NULL, "%s", text);
        check_stop();
    }
    place.pc--; /* it returns behind the call */
    launch_fail(FAIL_HEAP, place, "%s", text);
    schedule_abandon();
}

/* ---- what programs call -------------------------------------------------------------------------- */

#define CALLER ((Place){NULL, 0, (uintptr_t)__builtin_return_address(0)})

void *tg_malloc(size_t bytes) { return of_a_kernel() ? take_locked(bytes) : malloc(bytes); }
void tg_free(void *pointer) {
    if (of_a_kernel())
        give(pointer, "free", CALLER);
    else
        free(pointer);
}

/* The operators of C++, as they are called in object files; those of the host are in its library,
 * if the program needs it for anything else. */
static void *without_library(size_t bytes) {
    void *place = malloc(bytes ? bytes : 1);
    if (!place) abort(); /* there is nobody who would throw */
    return place;
}

#define TAKE(symbol)                                                            \
    void *symbol(size_t bytes) {                                                \
        static void *(*host)(size_t);                                           \
        if (of_a_kernel()) return take_locked(bytes);                           \
        if (!host) *(void **)&host = dlsym(RTLD_NEXT, #symbol);                 \
        return host ? host(bytes) : without_library(bytes);                     \
    }
#define GIVE(symbol)                                                            \
    void symbol(void *pointer, size_t bytes) {                                  \
        static void (*host)(void *, size_t);                                    \
        if (of_a_kernel()) {                                                    \
            give(pointer, "delete", CALLER);                                    \
            return;                                                             \
        }                                                                       \
        if (!host) *(void **)&host = dlsym(RTLD_NEXT, #symbol);                 \
        if (host)                                                               \
            host(pointer, bytes);                                               \
        else                                                                    \
            free(pointer);                                                      \
    }
TAKE(_Znwm) /* new */
TAKE(_Znam) /* new[] */
GIVE(_ZdlPv)  /* delete: the second argument is not there, and nobody looks at it */
GIVE(_ZdaPv)  /* delete[] */
GIVE(_ZdlPvm) /* delete with a size */
GIVE(_ZdaPvm)
