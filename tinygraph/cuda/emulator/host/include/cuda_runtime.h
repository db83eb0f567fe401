/* What a program sees of the CUDA runtime: the API, its templates, and launches.
 *
 * The translator turns   kernel<<<grid, block, shared, stream>>>(a, b)   into
 *     tg_launch("kernel", TG_KERNEL(kernel)).with(grid, block, shared, stream)(a, b)
 * A launch keeps the arguments and calls the kernel with copies of them in each CUDA thread.
 */
#pragma once
#include "cuda_runtime_api.h"

/* ---- memory: the name that the program gives it is part of every message about it ---------------- */

template <class T>
cudaError_t tg_take(T **pointer, size_t bytes, const char *name, int kind, const char *function,
                    const char *file, int line)
{
    return tg_memory_take((void **)pointer, bytes, kind, name, function, file, line);
}
template <class T> cudaError_t cudaMalloc(T **pointer, size_t bytes, TG_HERE)
{
    return tg_take(pointer, bytes, "", 0, "cudaMalloc", file, line);
}
#define TG_TAKE(function, kind, ...)                                                               \
    template <class T>                                                                             \
    cudaError_t tg_##function(const char *name, const char *file, int line, T **pointer,           \
                              size_t bytes, ##__VA_ARGS__)                                         \
    {                                                                                              \
        return tg_take(pointer, bytes, name, kind, #function, file, line);                         \
    }
TG_TAKE(cudaMalloc, 0)
TG_TAKE(cudaMallocAsync, 0, cudaStream_t = 0)
TG_TAKE(cudaMallocManaged, 1, unsigned = cudaMemAttachGlobal)
TG_TAKE(cudaMallocHost, 2, unsigned = 0)
TG_TAKE(cudaHostAlloc, 2, unsigned = 0)
#undef TG_TAKE

template <class T>
cudaError_t tg_cudaMallocPitch(const char *name, const char *file, int line, T **pointer,
                               size_t *pitch, size_t width, size_t height)
{
    *pitch = (width + 511) / 512 * 512;
    return tg_take(pointer, *pitch * height, name, 0, "cudaMallocPitch", file, line);
}
#define cudaMalloc(pointer, ...) tg_cudaMalloc(#pointer, __FILE__, __LINE__, pointer, __VA_ARGS__)
#define cudaMallocAsync(pointer, ...) \
    tg_cudaMallocAsync(#pointer, __FILE__, __LINE__, pointer, __VA_ARGS__)
#define cudaMallocManaged(pointer, ...) \
    tg_cudaMallocManaged(#pointer, __FILE__, __LINE__, pointer, __VA_ARGS__)
#define cudaMallocHost(pointer, ...) \
    tg_cudaMallocHost(#pointer, __FILE__, __LINE__, pointer, __VA_ARGS__)
#define cudaHostAlloc(pointer, ...) \
    tg_cudaHostAlloc(#pointer, __FILE__, __LINE__, pointer, __VA_ARGS__)
#define cudaMallocPitch(pointer, ...) \
    tg_cudaMallocPitch(#pointer, __FILE__, __LINE__, pointer, __VA_ARGS__)

inline cudaError_t cudaFree(void *pointer, TG_HERE)
{
    return tg_memory_give(pointer, 0, "cudaFree", file, line);
}
inline cudaError_t cudaFreeAsync(void *pointer, cudaStream_t, TG_HERE)
{
    return tg_memory_give(pointer, 0, "cudaFreeAsync", file, line);
}
inline cudaError_t cudaFreeHost(void *pointer, TG_HERE)
{
    return tg_memory_give(pointer, 2, "cudaFreeHost", file, line);
}
template <class T> cudaError_t cudaHostGetDevicePointer(T **device, void *host, unsigned)
{
    *device = (T *)host;
    return cudaSuccess;
}

/* ---- __device__ and __constant__ variables ---------------------------------------------------------- */

template <class T>
cudaError_t cudaMemcpyToSymbol(T &symbol, const void *from, size_t bytes, size_t offset = 0,
                               cudaMemcpyKind kind = cudaMemcpyHostToDevice, TG_HERE)
{
    return tg_memory_copy((char *)&symbol + offset, bytes, from, bytes, bytes, 1, kind,
                          "cudaMemcpyToSymbol", file, line);
}
template <class T>
cudaError_t cudaMemcpyToSymbolAsync(T &symbol, const void *from, size_t bytes, size_t offset,
                                    cudaMemcpyKind kind, cudaStream_t = 0, TG_HERE)
{
    return tg_memory_copy((char *)&symbol + offset, bytes, from, bytes, bytes, 1, kind,
                          "cudaMemcpyToSymbolAsync", file, line);
}
template <class T>
cudaError_t cudaMemcpyFromSymbol(void *to, const T &symbol, size_t bytes, size_t offset = 0,
                                 cudaMemcpyKind kind = cudaMemcpyDeviceToHost, TG_HERE)
{
    return tg_memory_copy(to, bytes, (const char *)&symbol + offset, bytes, bytes, 1, kind,
                          "cudaMemcpyFromSymbol", file, line);
}
template <class T>
cudaError_t cudaMemcpyFromSymbolAsync(void *to, const T &symbol, size_t bytes, size_t offset,
                                      cudaMemcpyKind kind, cudaStream_t = 0, TG_HERE)
{
    return tg_memory_copy(to, bytes, (const char *)&symbol + offset, bytes, bytes, 1, kind,
                          "cudaMemcpyFromSymbolAsync", file, line);
}
template <class A, class T> cudaError_t cudaGetSymbolAddress(A **address, const T &symbol)
{
    *address = (A *)&symbol;
    return cudaSuccess;
}
template <class T> cudaError_t cudaGetSymbolSize(size_t *bytes, const T &)
{
    *bytes = sizeof(T);
    return cudaSuccess;
}

#include "tg_launch.h"

/* ---- functions of kernels, which have no registers to tell of ------------------------------------------ */

template <class F> cudaError_t cudaFuncSetAttribute(F *function, cudaFuncAttribute what, int value)
{
    const bool shared = what == cudaFuncAttributeMaxDynamicSharedMemorySize;
    return shared ? tg_function_shared((const void *)function, value) : cudaSuccess;
}
template <class F> cudaError_t cudaFuncSetCacheConfig(F *, cudaFuncCache) { return cudaSuccess; }
template <class F> cudaError_t cudaFuncSetSharedMemConfig(F *, cudaSharedMemConfig) { return cudaSuccess; }
template <class F> cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *about, F *)
{
    *about = cudaFuncAttributes();
    about->maxThreadsPerBlock = 1024;
    about->ptxVersion = about->binaryVersion = 90;
    about->maxDynamicSharedSizeBytes = 49152;
    return cudaSuccess;
}
template <class F>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, F, int threads, size_t shared)
{
    return tg_occupancy(blocks, threads, shared);
}
template <class F>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, F, int threads,
                                                                   size_t shared, unsigned)
{
    return tg_occupancy(blocks, threads, shared);
}

/* The block of the best occupancy is the largest one that divides the threads of a multiprocessor. */
template <class F, class S>
cudaError_t cudaOccupancyMaxPotentialBlockSizeVariableSMem(int *grid, int *block, F, S shared_of,
                                                           int limit = 0)
{
    int best = 0, processors = 0;
    cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0);
    for (int threads = limit && limit < 1024 ? limit / 32 * 32 : 1024; threads > 0; threads -= 32) {
        int blocks = 0;
        tg_occupancy(&blocks, threads, shared_of(threads));
        if (blocks * threads <= best) continue;
        best = blocks * threads;
        *block = threads;
        *grid = blocks * processors;
    }
    return best ? cudaSuccess : cudaErrorInvalidValue;
}
template <class F>
cudaError_t cudaOccupancyMaxPotentialBlockSize(int *grid, int *block, F function, size_t shared = 0,
                                               int limit = 0)
{
    return cudaOccupancyMaxPotentialBlockSizeVariableSMem(
        grid, block, function, [=](int) { return shared; }, limit);
}
