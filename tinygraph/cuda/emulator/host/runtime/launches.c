/* Launches: what a GPU would refuse is refused with its error code; the rest runs until it is done. */
#define _GNU_SOURCE
#include "host.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct { uint32_t x, y, z; } Extent;
typedef cudaError_t (*Registered)(const void *kernel, Extent grid, Extent block, void **arguments,
                                  size_t shared, int together, const char *file, int line);

int tg_launch(Entry entry, const char *packed, uint32_t count, const uint32_t grid[3],
              const uint32_t block[3], uint32_t shared, int workers, double timeout,
              const uintptr_t module[2], Failure *failure);
int tg_launch_together(Entry entry, const char *packed, const uint32_t grid[3], const uint32_t block[3],
                       uint32_t shared, double timeout, const uintptr_t module[2], Failure *failure);
int tg_module(uintptr_t address, uintptr_t out[3]);
void tg_check_begin(int profile, uintptr_t low, uintptr_t high);
void tg_check_arguments(uintptr_t low, size_t bytes);
void tg_check_end(void);
cudaError_t tg_occupancy(int *blocks, int threads, size_t shared);

static size_t most_shared = 48 * 1024; /* until a program asks for more */

cudaError_t tg_function_shared(const void *function, int bytes) {
    (void)function;
    if (bytes < 0 || bytes > SHARED_LIMIT) return host_error(cudaErrorInvalidValue);
    if ((size_t)bytes > most_shared) most_shared = (size_t)bytes;
    return cudaSuccess;
}

static double timeout(void) {
    const char *text = getenv("TINYGRAPH_KERNEL_TIMEOUT");
    const double seconds = text ? atof(text) : 0;
    return seconds > 0 ? seconds : host_checks() ? 10 : 60;
}

static int workers(void) {
    const char *text = getenv("TINYGRAPH_EMULATOR_THREADS");
    if (text && atoi(text) > 0) return atoi(text);
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) ? 1 : CPU_COUNT(&set);
}

/* Why a GPU would refuse a launch; NULL if it would not. */
static const char *refusal(const uint32_t grid[3], const uint32_t block[3], size_t shared, int together,
                           cudaError_t *error, char *why, size_t size) {
    const uint64_t threads = (uint64_t)block[0] * block[1] * block[2];
    *error = cudaErrorInvalidConfiguration;
    if (!grid[0] || !grid[1] || !grid[2])
        snprintf(why, size, "a grid of %u x %u x %u blocks", grid[0], grid[1], grid[2]);
    else if (grid[0] > 0x7fffffff || grid[1] > 65535 || grid[2] > 65535)
        snprintf(why, size, "a grid of %u x %u x %u blocks; at most 2147483647 x 65535 x 65535 are possible",
                 grid[0], grid[1], grid[2]);
    else if (!threads || threads > MAX_THREADS || block[0] > 1024 || block[1] > 1024 || block[2] > 64)
        snprintf(why, size, "a block of %u x %u x %u threads; at most 1024, and 64 along z, are possible",
                 block[0], block[1], block[2]);
    else if (shared > most_shared) {
        *error = cudaErrorInvalidValue;
        snprintf(why, size, "%zu bytes of dynamic shared memory; %zu are possible%s", shared, most_shared,
                 most_shared < SHARED_LIMIT ? ", more after cudaFuncSetAttribute("
                 "cudaFuncAttributeMaxDynamicSharedMemorySize)" : "");
    } else if (together) {
        int blocks = 0, processors = 0;
        tg_occupancy(&blocks, (int)threads, shared);
        cudaError_t cudaDeviceGetAttribute(int *, enum cudaDeviceAttr, int);
        cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0);
        *error = cudaErrorCooperativeLaunchTooLarge;
        const uint64_t asked = (uint64_t)grid[0] * grid[1] * grid[2];
        if (asked <= (uint64_t)(blocks * processors)) return NULL;
        snprintf(why, size, "%lu blocks; of this size %d run together", (unsigned long)asked,
                 blocks * processors);
    } else
        return NULL;
    return why;
}

/* The error code of a kernel that was stopped. */
static cudaError_t error_of(const Failure *failure, FindingKind kind) {
    if (kind == MISALIGNED) return cudaErrorMisalignedAddress;
    if (kind == DEADLOCK || kind == TIMEOUT) return cudaErrorLaunchTimeout;
    switch (failure->kind) {
    case FAIL_STACK: return cudaErrorHardwareStackError;
    case FAIL_TIMEOUT: case FAIL_DEADLOCK: return cudaErrorLaunchTimeout;
    case FAIL_SHARED: return cudaErrorLaunchOutOfResources;
    case FAIL_ARITHMETIC: return cudaErrorLaunchFailure;
    case FAIL_TRAP:
        return strncmp(failure->text, "assertion", 9) ? cudaErrorIllegalInstruction : cudaErrorAssert;
    default: return cudaErrorIllegalAddress;
    }
}

static FindingKind last_kind(void) {
    uint32_t tg_check_findings(const void **);
    const void *table;
    uint32_t tg_finding_size(void);
    for (uint32_t left = tg_check_findings(&table); left--;) {
        const char *found = (const char *)table + (size_t)left * tg_finding_size();
        const int32_t kind = *(const int32_t *)found;
        if (!(kind & NOTE)) return (FindingKind)kind;
    }
    return 0;
}

/* As a GPU says it: the place, the thread, the condition. */
static void tell_assertion(const Failure *f) {
    host_says(f->file, f->line, "block: [%u,%u,%u], thread: [%u,%u,%u] %s", f->block.x, f->block.y,
              f->block.z, f->thread.x, f->thread.y, f->thread.z, f->text);
}

static void run(const char *name, Entry entry, const void *packed, size_t bytes, const uint32_t grid[3],
                const uint32_t block[3], size_t shared, int together) {
    uintptr_t module[3];
    tg_module((uintptr_t)entry, module);
    Failure failure = {0};
    if (host_checks()) {
        tg_check_begin(0, module[1], module[2]);
        tg_check_arguments((uintptr_t)packed, bytes);
    }
    memory_enter_launch();
    const uintptr_t range[2] = {module[1], module[2]};
    const int kind = together
        ? tg_launch_together(entry, packed, grid, block, (uint32_t)shared, timeout(), range, &failure)
        : tg_launch(entry, packed, 0, grid, block, (uint32_t)shared, workers(), timeout(), range, &failure);
    memory_leave_launch();
    FindingKind worst = 0;
    uint32_t found = 0;
    if (host_checks()) {
        tg_check_waits();
        found = host_send_findings(name);
        worst = kind ? last_kind() : 0;
        tg_check_end();
    }
    if (!kind) return;
    host_break(error_of(&failure, worst));
    const bool own = failure.kind == FAIL_TRAP &&
        (!strncmp(failure.text, "assertion", 9) || !strcmp(failure.text, "__trap()"));
    if (failure.kind == FAIL_TRAP) tell_assertion(&failure);
    if (!own && !found) host_send_failure(name, &failure);
}

/* A thread is done, and nothing is destroyed that it was called with. */
void tg_thread_returns(void) { block_thread_leaves(); }

cudaError_t tg_program_launch(const char *name, Entry entry, const void *packed, size_t bytes,
                              const uint32_t grid[3], const uint32_t block[3], size_t shared, int together,
                              const char *file, int line) {
    if (tg_worker)
        tg_trap("a launch inside of a kernel (dynamic parallelism), which the emulator does not have", file,
                line);
    if (host_broken()) return host_broken();
    char why[240];
    cudaError_t error;
    if (refusal(grid, block, shared, together, &error, why, sizeof why))
        return host_error_at(error, *name ? name : "launch", file, line, why);
    host_lock();
    run(name, entry, packed, bytes, grid, block, shared, together);
    host_unlock();
    return cudaSuccess;
}

/* ---- kernels by their address ---------------------------------------------------------------------------- */

static struct { const void *kernel; Registered launch; } *kernels;
static uint32_t kernel_count;

void tg_register_kernel(const void *kernel, Registered launch) {
    host_lock();
    uint32_t i = 0;
    while (i < kernel_count && kernels[i].kernel != kernel) i++;
    if (i == kernel_count) {
        kernels = realloc(kernels, (kernel_count + 1) * sizeof *kernels);
        if (!kernels) abort();
        kernels[kernel_count].kernel = kernel;
        kernels[kernel_count++].launch = launch;
    }
    host_unlock();
}

cudaError_t tg_launch_registered(const void *kernel, Extent grid, Extent block, void **arguments,
                                 size_t shared, int together, const char *file, int line) {
    for (uint32_t i = 0; i < kernel_count; i++)
        if (kernels[i].kernel == kernel)
            return kernels[i].launch(kernel, grid, block, arguments, shared, together, file, line);
    return host_error_at(cudaErrorInvalidDeviceFunction, "launch", file, line, "no kernel of this program");
}

