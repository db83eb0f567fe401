/* The functions of the CUDA runtime API that the emulator has; host/runtime/ defines them.
 *
 * What a program calls with a place in its source (TG_HERE) can be named in a message.  Streams are
 * stand-ins: every call is done when it returns, in the order of the calls.
 *
 * Source: CUDA Runtime API reference.
 */
#pragma once
#include "driver_types.h"
#include "cuda_emulator.h"

#define __CUDA_RUNTIME_API_H__
#define __CUDA_RUNTIME_H__
#define CUDART_VERSION 12000
#define CUDART_CB
#define CUDARTAPI

typedef cudaError_t cudaError_enum_t;
typedef struct cudaMemPool_st *cudaMemPool_t;

extern "C" {
/* What the functions below stand on.  Kinds of memory: 0 device, 1 managed, 2 of the host. */
cudaError_t tg_memory_take(void **pointer, size_t bytes, int kind, const char *name,
                           const char *function, const char *file, int line);
cudaError_t tg_memory_give(void *pointer, int kind, const char *function, const char *file, int line);
cudaError_t tg_memory_copy(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                           size_t width, size_t height, int kind, const char *function,
                           const char *file, int line);
cudaError_t tg_memory_set(void *to, size_t pitch, int value, size_t width, size_t height,
                          const char *function, const char *file, int line);
cudaError_t tg_symbol_size(size_t *bytes, const void *symbol);
cudaError_t tg_function_shared(const void *function, int bytes);

const char *cudaGetErrorName(cudaError_t error);
const char *cudaGetErrorString(cudaError_t error);
cudaError_t cudaGetLastError(void);
cudaError_t cudaPeekAtLastError(void);

cudaError_t cudaGetDeviceCount(int *count);
cudaError_t cudaGetDevice(int *device);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaSetDeviceFlags(unsigned flags);
cudaError_t cudaGetDeviceFlags(unsigned *flags);
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device);
cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device);
cudaError_t cudaChooseDevice(int *device, const struct cudaDeviceProp *properties);
cudaError_t cudaDeviceSynchronize(void);
cudaError_t cudaThreadSynchronize(void);
cudaError_t cudaDeviceReset(void);
cudaError_t cudaDeviceSetLimit(enum cudaLimit limit, size_t value);
cudaError_t cudaDeviceGetLimit(size_t *value, enum cudaLimit limit);
cudaError_t cudaDeviceSetCacheConfig(enum cudaFuncCache cache);
cudaError_t cudaDeviceGetCacheConfig(enum cudaFuncCache *cache);
cudaError_t cudaDeviceSetSharedMemConfig(enum cudaSharedMemConfig config);
cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest);
cudaError_t cudaDeviceGetP2PAttribute(int *value, enum cudaDeviceP2PAttr attribute, int device, int peer);
cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer);
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags);
cudaError_t cudaDeviceDisablePeerAccess(int peer);
cudaError_t cudaDeviceGetPCIBusId(char *id, int length, int device);
cudaError_t cudaDriverGetVersion(int *version);
cudaError_t cudaRuntimeGetVersion(int *version);
cudaError_t cudaMemGetInfo(size_t *free, size_t *total);
cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *about, const void *pointer);
cudaError_t cudaHostRegister(void *pointer, size_t bytes, unsigned flags);
cudaError_t cudaHostUnregister(void *pointer);
cudaError_t cudaCtxResetPersistingL2Cache(void);
cudaError_t cudaProfilerStart(void);
cudaError_t cudaProfilerStop(void);

cudaError_t cudaStreamCreate(cudaStream_t *stream);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags);
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority);
cudaError_t cudaStreamGetPriority(cudaStream_t stream, int *priority);
cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned *flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamQuery(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags = 0);
cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void *data,
                                  unsigned flags);
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *data);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream = 0);
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t begin, cudaEvent_t end);

cudaError_t tg_occupancy(int *blocks, int threads, size_t shared);
}

inline cudaError_t cudaEventCreate(cudaEvent_t *event, unsigned flags = 0)
{
    return cudaEventCreateWithFlags(event, flags);
}
inline cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream = 0, unsigned = 0)
{
    return cudaEventRecord(event, stream);
}

/* ---- copying and filling --------------------------------------------------------------------------- */

#define TG_COPY(function, ...)                                                                     \
    inline cudaError_t function(void *to, const void *from, size_t bytes, cudaMemcpyKind kind,     \
                                ##__VA_ARGS__, TG_HERE)                                            \
    {                                                                                              \
        return tg_memory_copy(to, bytes, from, bytes, bytes, 1, kind, #function, file, line);      \
    }
TG_COPY(cudaMemcpy)
TG_COPY(cudaMemcpyAsync, cudaStream_t = 0)
#undef TG_COPY

#define TG_COPY_ROWS(function, ...)                                                                \
    inline cudaError_t function(void *to, size_t to_pitch, const void *from, size_t from_pitch,    \
                                size_t width, size_t height, cudaMemcpyKind kind, ##__VA_ARGS__,   \
                                TG_HERE)                                                           \
    {                                                                                              \
        return tg_memory_copy(to, to_pitch, from, from_pitch, width, height, kind, #function,      \
                              file, line);                                                         \
    }
TG_COPY_ROWS(cudaMemcpy2D)
TG_COPY_ROWS(cudaMemcpy2DAsync, cudaStream_t = 0)
#undef TG_COPY_ROWS

inline cudaError_t cudaMemcpyPeer(void *to, int, const void *from, int, size_t bytes, TG_HERE)
{
    return tg_memory_copy(to, bytes, from, bytes, bytes, 1, cudaMemcpyDefault, "cudaMemcpyPeer",
                          file, line);
}
inline cudaError_t cudaMemset(void *to, int value, size_t bytes, TG_HERE)
{
    return tg_memory_set(to, bytes, value, bytes, 1, "cudaMemset", file, line);
}
inline cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t = 0, TG_HERE)
{
    return tg_memory_set(to, bytes, value, bytes, 1, "cudaMemsetAsync", file, line);
}
inline cudaError_t cudaMemset2D(void *to, size_t pitch, int value, size_t width, size_t height, TG_HERE)
{
    return tg_memory_set(to, pitch, value, width, height, "cudaMemset2D", file, line);
}

/* ---- where managed memory lies is a hint, and nothing moves here ------------------------------------- */

inline cudaError_t cudaMemPrefetchAsync(const void *, size_t, int, cudaStream_t = 0) { return cudaSuccess; }
inline cudaError_t cudaMemPrefetchAsync(const void *, size_t, cudaMemLocation, unsigned,
                                        cudaStream_t = 0)
{
    return cudaSuccess;
}
inline cudaError_t cudaMemAdvise(const void *, size_t, cudaMemoryAdvise, int) { return cudaSuccess; }
inline cudaError_t cudaMemAdvise(const void *, size_t, cudaMemoryAdvise, cudaMemLocation)
{
    return cudaSuccess;
}
template <class T>
cudaError_t cudaStreamAttachMemAsync(cudaStream_t, T *, size_t = 0, unsigned = cudaMemAttachSingle)
{
    return cudaSuccess;
}
