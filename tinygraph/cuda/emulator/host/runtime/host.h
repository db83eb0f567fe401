/* The host half of a program: what cuda_runtime_api.h declares, on top of the emulator's run time.
 *
 *     report.c     messages, and findings on their way to the parent process
 *     errors.c     error codes, their names, the last one
 *     atomics.c    the processor's atomics, which the compiler calls by name under the checker
 *     memory.c     the memory of the device: who has it, how much, what is in it
 *     heap.c       malloc and new of kernels
 *     copies.c     cudaMemcpy and cudaMemset
 *     device.c     what the device says of itself
 *     streams.c    streams and events: everything is done in the order of the calls
 *     launches.c   launches, plain or under the checker
 *
 * Each file calls those above it alone.  Python (emulator/host/) tells the process what it needs in
 * its environment: TINYGRAPH_PROGRAM_CHECK (0 or 1), _REPORT (a file descriptor), _VARIABLES (a file).
 */
#pragma once
#include "../../runtime/check.h"
#include "../include/driver_types.h"

/* report.c */
bool host_checks(void);
uintptr_t host_program(void);
__attribute__((format(printf, 3, 4))) void host_says(const char *file, int line, const char *format, ...);
void host_lock(void);
void host_unlock(void);
void host_finding(FindingKind kind, const char *name, uint32_t element, uintptr_t low, uintptr_t high,
                  uintptr_t at, const char *file, int line, const char *text);
uint32_t host_send_findings(const char *launch);
void host_send_failure(const char *launch, const Failure *failure);

/* errors.c */
const char *cudaGetErrorString(cudaError_t error);
cudaError_t host_error(cudaError_t error);         /* note it as the last one */
cudaError_t host_error_at(cudaError_t error, const char *function, const char *file, int line,
                          const char *why);        /* and say why */
cudaError_t host_broken(void);                     /* the error of a kernel, which stays */
void host_break(cudaError_t error);

/* memory.c */
enum { DEVICE_MEMORY, MANAGED_MEMORY, HOST_MEMORY, SYMBOL_MEMORY, HEAP_MEMORY };
typedef struct {
    uintptr_t low, high;
    char name[64];
    int kind;
    bool given_back, constant;
    uint32_t element;
    uint8_t *state; /* of each byte: INITIALISED? */
} Memory;
Memory *memory_of(const void *pointer);
void memory_open(Memory *m);  /* the host may touch it now: a copy, a launch */
void memory_close(Memory *m); /* and no more */
void memory_enter_launch(void);
void memory_leave_launch(void);
size_t memory_total(void);
size_t memory_used(void);
void *memory_heap(size_t bytes); /* during a launch: the heap of the device */
