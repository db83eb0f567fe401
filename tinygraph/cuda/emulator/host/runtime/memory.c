/* The memory of the device: what cudaMalloc gave, under the name that the program has for it.
 *
 * Arrays lie 64 GiB from each other, so that an index that goes astray meets nothing else; memory that
 * was given back is not used again.  Under the checker the host cannot touch memory of the device but
 * through the API: its pages are open during a launch and a copy alone.
 */
#define _GNU_SOURCE
#include "host.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const uintptr_t LAST = (uintptr_t)100 << 40, STEP = (uintptr_t)64 << 30;
static uintptr_t next_place = (uintptr_t)16 << 40;
static Memory *list;
static uint32_t count, room;
static size_t used;

size_t memory_total(void) { return (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE) / 2; }
size_t memory_used(void) { return used; }

static size_t whole_pages(const Memory *m) { return (m->high - m->low + 4095) / 4096 * 4096; }

static Memory *add(Memory new) {
    if (count == room) {
        room = room ? 2 * room : 64;
        list = realloc(list, room * sizeof *list);
        if (!list) abort();
    }
    list[count] = new;
    return &list[count++];
}

/* The variables of the program that live on the device; Python has written where they are. */
static void read_variables(void) {
    static bool done;
    const char *path = getenv("TINYGRAPH_PROGRAM_VARIABLES");
    if (done || !path) return;
    done = true;
    FILE *file = fopen(path, "r");
    const uintptr_t base = host_program();
    char name[64];
    unsigned long address, size, constant;
    while (file && fscanf(file, "%63s %lu %lu %lu", name, &address, &size, &constant) == 4) {
        Memory m = {.low = base + address, .high = base + address + size,
                    .kind = SYMBOL_MEMORY, .constant = constant, .element = size % 4 ? 1 : 4};
        memcpy(m.name, name, sizeof name);
        add(m);
    }
    if (file) fclose(file);
}

/* Whose memory an address is; NULL for memory of the host. */
Memory *memory_of(const void *pointer) {
    const uintptr_t address = (uintptr_t)pointer;
    read_variables();
    for (uint32_t i = count; i-- > 0;)
        if (address >= list[i].low && address < list[i].high) return &list[i];
    return NULL;
}

/* ---- who may touch it --------------------------------------------------------------------------- */

static bool guarded(const Memory *m) {
    const bool of_the_device = m->kind == DEVICE_MEMORY || m->kind == HEAP_MEMORY;
    return host_checks() && of_the_device && !m->given_back;
}

void memory_open(Memory *m) {
    if (m && guarded(m)) mprotect((void *)m->low, whole_pages(m), PROT_READ | PROT_WRITE);
}
void memory_close(Memory *m) {
    if (m && guarded(m)) mprotect((void *)m->low, whole_pages(m), PROT_NONE);
}

static struct sigaction before;

/* The host has touched what it may not. */
static void on_fault(int signal, siginfo_t *info, void *context) {
    (void)context;
    const uintptr_t address = (uintptr_t)info->si_addr;
    for (uint32_t i = 0; i < count; i++) {
        const Memory *m = &list[i];
        if (address - m->low >= whole_pages(m) || tg_worker) continue;
        host_says(NULL, 0, "the host reads or writes %s%s, which is memory of the device: copy it with "
                  "cudaMemcpy, or take it with cudaMallocManaged", m->name,
                  m->given_back ? " (given back with cudaFree)" : "");
        Failure failure = {.kind = FAIL_POINTER};
#if defined(__x86_64__)
        failure.pc = (uintptr_t)((ucontext_t *)context)->uc_mcontext.gregs[16 /* REG_RIP */];
#elif defined(__aarch64__)
        failure.pc = (uintptr_t)((ucontext_t *)context)->uc_mcontext.pc;
#endif
        snprintf(failure.text, sizeof failure.text, "%s", m->name);
        host_send_failure("host", &failure);
        break;
    }
    sigaction(signal, &before, NULL); /* the instruction faults again, and the program ends */
}

static void watch_the_host(void) {
    static bool done;
    if (done) return;
    done = true;
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    sigemptyset(&action.sa_mask);
    sigaction(SIGSEGV, &action, &before); /* before the emulator's own handler, which asks this one */
}

/* ---- taking and giving back ------------------------------------------------------------------------ */

/* `(void **)&d_x` is called d_x. */
static void plain_name(char *name, size_t size, const char *given) {
    const char *from = strrchr(given, '&');
    from = from ? from + 1 : given;
    while (*from == ' ' || *from == '(') from++;
    snprintf(name, size, "%s", *from ? from : "memory");
    for (size_t length = strlen(name); length && (name[length - 1] == ' ' || name[length - 1] == ')');)
        name[--length] = 0;
}

static void *far_memory(size_t bytes) {
    const uintptr_t wish = next_place < LAST ? next_place : 0;
    next_place += (bytes / STEP + 1) * STEP;
    return mmap((void *)wish, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
                0);
}

cudaError_t tg_memory_take(void **pointer, size_t bytes, int kind, const char *name,
                           const char *function, const char *file, int line) {
    if (host_broken()) return host_broken();
    if (!pointer) return host_error_at(cudaErrorInvalidValue, function, file, line, "no pointer to a pointer");
    *pointer = NULL;
    if (!bytes) return cudaSuccess;
    host_lock();
    read_variables();
    watch_the_host();
    Memory m = {.kind = kind};
    plain_name(m.name, sizeof m.name, name);
    void *place = bytes <= memory_total() - used ? far_memory(bytes) : MAP_FAILED;
    if (place == MAP_FAILED) {
        host_unlock();
        char why[160];
        snprintf(why, sizeof why, "%zu bytes for %s; %zu of %zu are left", bytes, m.name,
                 memory_total() - used, memory_total());
        return host_error_at(cudaErrorMemoryAllocation, function, file, line, why);
    }
    m.low = (uintptr_t)place;
    m.high = m.low + bytes;
    m.state = region_zeros(bytes);
    if (kind != DEVICE_MEMORY) memset(m.state, INITIALISED, bytes); /* the host writes there unseen */
    used += bytes;
    memory_close(add(m));
    *pointer = place;
    host_unlock();
    return cudaSuccess;
}

cudaError_t tg_memory_give(void *pointer, int kind, const char *function, const char *file, int line) {
    if (!pointer) return host_broken();
    host_lock();
    Memory *m = memory_of(pointer);
    const char *why = !m ? "no memory that the device has given"
                      : m->given_back ? "given back already"
                      : m->low != (uintptr_t)pointer ? "not the beginning of its memory"
                      : (m->kind == HOST_MEMORY) != (kind == HOST_MEMORY) || m->kind == SYMBOL_MEMORY
                          ? "taken in another way: cudaFreeHost belongs to cudaMallocHost"
                          : NULL;
    if (why) {
        host_unlock();
        return host_error_at(cudaErrorInvalidValue, function, file, line, why);
    }
    used -= m->high - m->low;
    munmap(m->state, m->high - m->low + 1);
    m->state = NULL;
    m->given_back = true;
    /* Its addresses stay taken: whoever uses them is met. */
    mmap((void *)m->low, whole_pages(m), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED,
         -1, 0);
    host_unlock();
    return host_broken();
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *about, const void *pointer) {
    const Memory *m = memory_of(pointer);
    static const enum cudaMemoryType TYPES[] = {cudaMemoryTypeDevice, cudaMemoryTypeManaged,
                                                cudaMemoryTypeHost, cudaMemoryTypeDevice,
                                                cudaMemoryTypeDevice};
    *about = (struct cudaPointerAttributes){.type = m ? TYPES[m->kind] : cudaMemoryTypeUnregistered};
    about->devicePointer = m ? (void *)pointer : NULL;
    about->hostPointer = m && (m->kind == DEVICE_MEMORY) ? NULL : (void *)pointer;
    return cudaSuccess;
}

/* Memory of the host that the device may use as it lies. */
cudaError_t cudaHostRegister(void *pointer, size_t bytes, unsigned flags) {
    (void)flags;
    if (!pointer || !bytes) return host_error(cudaErrorInvalidValue);
    if (memory_of(pointer)) return host_error(cudaErrorHostMemoryAlreadyRegistered);
    host_lock();
    Memory m = {.low = (uintptr_t)pointer, .high = (uintptr_t)pointer + bytes, .kind = HOST_MEMORY,
                .name = "registered memory"};
    m.state = region_zeros(bytes);
    memset(m.state, INITIALISED, bytes);
    add(m);
    host_unlock();
    return cudaSuccess;
}

cudaError_t cudaHostUnregister(void *pointer) {
    host_lock();
    Memory *m = memory_of(pointer);
    const bool known = m && m->low == (uintptr_t)pointer && m->kind == HOST_MEMORY;
    if (known) {
        munmap(m->state, m->high - m->low + 1);
        *m = list[--count];
    }
    host_unlock();
    return known ? cudaSuccess : host_error(cudaErrorHostMemoryNotRegistered);
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total) {
    if (total) *total = memory_total();
    if (free_bytes) *free_bytes = memory_total() - used;
    return cudaSuccess;
}

/* ---- a launch ------------------------------------------------------------------------------------------- */

static void tell_checker(const Memory *m) {
    const uint32_t flags = (m->kind == SYMBOL_MEMORY ? OF_THE_MODULE : 0) | (m->constant ? READ_ONLY : 0) |
                           (m->given_back ? GIVEN_BACK : 0) | (m->kind == HEAP_MEMORY ? HEAP : 0);
    if (host_checks()) tg_check_memory(m->low, m->high - m->low, m->name, m->element, flags, m->state);
}

/* Open the memory to a launch; under the checker, tell of it. */
void memory_enter_launch(void) {
    read_variables();
    for (uint32_t i = 0; i < count; i++) {
        Memory *m = &list[i];
        memory_open(m);
        tell_checker(m);
    }
}

void *memory_heap(size_t bytes) {
    void *place = far_memory(bytes);
    if (place == MAP_FAILED) return NULL;
    Memory m = {.low = (uintptr_t)place, .high = (uintptr_t)place + bytes, .kind = HEAP_MEMORY,
                .name = "the heap", .element = 1, .state = region_zeros(bytes)};
    tell_checker(add(m));
    return place;
}

void memory_leave_launch(void) {
    for (uint32_t i = 0; i < count; i++) {
        memory_close(&list[i]);
        const Region *r = host_checks() ? region_of(list[i].low) : NULL;
        if (r) list[i].element = r->element;
    }
}
