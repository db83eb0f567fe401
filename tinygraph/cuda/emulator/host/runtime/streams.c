/* Streams and events.  Every call is done when it returns: a stream has nothing to wait for, and the
 * time of an event is that of its record. */
#include "host.h"

#include <stdlib.h>
#include <time.h>

struct CUstream_st {
    unsigned flags;
    int priority;
};
struct CUevent_st {
    unsigned flags;
    bool recorded;
    struct timespec time;
};

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority) {
    *stream = calloc(1, sizeof **stream);
    if (!*stream) return host_error(cudaErrorMemoryAllocation);
    **stream = (struct CUstream_st){flags, priority};
    return host_broken();
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags) {
    return cudaStreamCreateWithPriority(stream, flags, 0);
}
cudaError_t cudaStreamCreate(cudaStream_t *stream) { return cudaStreamCreateWithPriority(stream, 0, 0); }

static bool is_made(cudaStream_t stream) { return (uintptr_t)stream > 2; } /* else one of the built-in */

cudaError_t cudaStreamGetPriority(cudaStream_t stream, int *priority) {
    return *priority = is_made(stream) ? stream->priority : 0, cudaSuccess;
}
cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned *flags) {
    return *flags = is_made(stream) ? stream->flags : 0, cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    if (!is_made(stream)) return host_error(cudaErrorInvalidResourceHandle);
    free(stream);
    return host_broken();
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) { return (void)stream, host_broken(); }
cudaError_t cudaStreamQuery(cudaStream_t stream) { return (void)stream, host_broken(); }
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
    return (void)stream, (void)flags, event ? host_broken() : host_error(cudaErrorInvalidResourceHandle);
}
cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void *data,
                                  unsigned flags) {
    (void)flags;
    callback(stream, host_broken(), data);
    return cudaSuccess;
}
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *data) {
    (void)stream;
    if (!host_broken()) function(data);
    return host_broken();
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags) {
    *event = calloc(1, sizeof **event);
    if (!*event) return host_error(cudaErrorMemoryAllocation);
    (*event)->flags = flags;
    return host_broken();
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
    if (!event) return host_error(cudaErrorInvalidResourceHandle);
    free(event);
    return host_broken();
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    (void)stream;
    if (!event) return host_error(cudaErrorInvalidResourceHandle);
    clock_gettime(CLOCK_MONOTONIC, &event->time);
    event->recorded = true;
    return host_broken();
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
    return event ? host_broken() : host_error(cudaErrorInvalidResourceHandle);
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) { return cudaEventQuery(event); }

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t begin, cudaEvent_t end) {
    if (!begin || !end || !begin->recorded || !end->recorded ||
        (begin->flags | end->flags) & cudaEventDisableTiming)
        return host_error(cudaErrorInvalidResourceHandle);
    *milliseconds = (float)(1e3 * (double)(end->time.tv_sec - begin->time.tv_sec) +
                            1e-6 * (double)(end->time.tv_nsec - begin->time.tv_nsec));
    return host_broken();
}
