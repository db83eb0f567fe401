/* What the device says of itself: the numbers of compute capability 9.0 where they are limits of the
 * programming model, those of this machine where they are sizes, and few multiprocessors, for a grid
 * that runs together has to fit into memory. */
#include "host.h"

#include <stdio.h>
#include <string.h>

enum { PROCESSORS = 4, THREADS_OF_PROCESSOR = 2048, BLOCKS_OF_PROCESSOR = 32, STATIC_SHARED = 48 * 1024,
       SHARED_OF_PROCESSOR = 228 * 1024, SHARED_RESERVED = 1024, KILOHERTZ = 1000000, MEGABYTE = 1 << 20 };

static const struct cudaDeviceProp *properties(void) {
    static struct cudaDeviceProp p = {
        .name = "tinygraph emulator", .sharedMemPerBlock = STATIC_SHARED, .regsPerBlock = 65536,
        .warpSize = WARP, .memPitch = 0x7fffffff, .maxThreadsPerBlock = MAX_THREADS,
        .maxThreadsDim = {1024, 1024, 64}, .maxGridSize = {0x7fffffff, 65535, 65535},
        .clockRate = KILOHERTZ, .totalConstMem = 65536, .major = 9, .minor = 0, .textureAlignment = 512,
        .texturePitchAlignment = 32, .deviceOverlap = 1, .multiProcessorCount = PROCESSORS, .integrated = 1,
        .canMapHostMemory = 1, .concurrentKernels = 0, .asyncEngineCount = 1, .unifiedAddressing = 1,
        .memoryClockRate = KILOHERTZ, .memoryBusWidth = 64, .l2CacheSize = MEGABYTE,
        .maxThreadsPerMultiProcessor = THREADS_OF_PROCESSOR, .streamPrioritiesSupported = 0,
        .sharedMemPerMultiprocessor = SHARED_OF_PROCESSOR, .regsPerMultiprocessor = 65536,
        .managedMemory = 1, .hostNativeAtomicSupported = 1, .singleToDoublePrecisionPerfRatio = 1,
        .concurrentManagedAccess = 1, .canUseHostPointerForRegisteredMem = 1, .cooperativeLaunch = 1,
        .sharedMemPerBlockOptin = SHARED_LIMIT, .maxBlocksPerMultiProcessor = BLOCKS_OF_PROCESSOR,
        .reservedSharedMemPerBlock = SHARED_RESERVED, .hostRegisterSupported = 1, .memoryPoolsSupported = 1,
    };
    p.totalGlobalMem = memory_total();
    return &p;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *out, int device) {
    if (device) return host_error(cudaErrorInvalidDevice);
    *out = *properties();
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device) {
    const struct cudaDeviceProp *p = properties();
    if (device) return host_error(cudaErrorInvalidDevice);
    switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock: *value = p->maxThreadsPerBlock; break;
    case cudaDevAttrMaxBlockDimX: *value = p->maxThreadsDim[0]; break;
    case cudaDevAttrMaxBlockDimY: *value = p->maxThreadsDim[1]; break;
    case cudaDevAttrMaxBlockDimZ: *value = p->maxThreadsDim[2]; break;
    case cudaDevAttrMaxGridDimX: *value = p->maxGridSize[0]; break;
    case cudaDevAttrMaxGridDimY: *value = p->maxGridSize[1]; break;
    case cudaDevAttrMaxGridDimZ: *value = p->maxGridSize[2]; break;
    case cudaDevAttrMaxSharedMemoryPerBlock: *value = (int)p->sharedMemPerBlock; break;
    case cudaDevAttrTotalConstantMemory: *value = (int)p->totalConstMem; break;
    case cudaDevAttrWarpSize: *value = p->warpSize; break;
    case cudaDevAttrMaxPitch: *value = (int)p->memPitch; break;
    case cudaDevAttrMaxRegistersPerBlock: *value = p->regsPerBlock; break;
    case cudaDevAttrClockRate: *value = p->clockRate; break;
    case cudaDevAttrTextureAlignment: *value = (int)p->textureAlignment; break;
    case cudaDevAttrGpuOverlap: *value = p->deviceOverlap; break;
    case cudaDevAttrMultiProcessorCount: *value = p->multiProcessorCount; break;
    case cudaDevAttrIntegrated: *value = p->integrated; break;
    case cudaDevAttrCanMapHostMemory: *value = p->canMapHostMemory; break;
    case cudaDevAttrMemoryClockRate: *value = p->memoryClockRate; break;
    case cudaDevAttrGlobalMemoryBusWidth: *value = p->memoryBusWidth; break;
    case cudaDevAttrL2CacheSize: *value = p->l2CacheSize; break;
    case cudaDevAttrMaxThreadsPerMultiProcessor: *value = p->maxThreadsPerMultiProcessor; break;
    case cudaDevAttrAsyncEngineCount: *value = p->asyncEngineCount; break;
    case cudaDevAttrUnifiedAddressing: *value = p->unifiedAddressing; break;
    case cudaDevAttrComputeCapabilityMajor: *value = p->major; break;
    case cudaDevAttrComputeCapabilityMinor: *value = p->minor; break;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor: *value = (int)p->sharedMemPerMultiprocessor; break;
    case cudaDevAttrMaxRegistersPerMultiprocessor: *value = p->regsPerMultiprocessor; break;
    case cudaDevAttrManagedMemory: *value = p->managedMemory; break;
    case cudaDevAttrHostNativeAtomicSupported: *value = p->hostNativeAtomicSupported; break;
    case cudaDevAttrSingleToDoublePrecisionPerfRatio: *value = p->singleToDoublePrecisionPerfRatio; break;
    case cudaDevAttrConcurrentManagedAccess: *value = p->concurrentManagedAccess; break;
    case cudaDevAttrCooperativeLaunch: *value = p->cooperativeLaunch; break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = (int)p->sharedMemPerBlockOptin; break;
    case cudaDevAttrHostRegisterSupported: *value = p->hostRegisterSupported; break;
    case cudaDevAttrMaxBlocksPerMultiprocessor: *value = p->maxBlocksPerMultiProcessor; break;
    case cudaDevAttrReservedSharedMemoryPerBlock: *value = (int)p->reservedSharedMemPerBlock; break;
    case cudaDevAttrMemoryPoolsSupported: *value = p->memoryPoolsSupported; break;
    default: *value = 0; /* what the emulator has nothing of */
    }
    return cudaSuccess;
}

/* Blocks of a multiprocessor, by its threads and its shared memory; there are registers for all. */
cudaError_t tg_occupancy(int *blocks, int threads, size_t shared) {
    *blocks = 0;
    if (threads < 1) return host_error(cudaErrorInvalidValue);
    if (threads > MAX_THREADS || shared > SHARED_LIMIT) return cudaSuccess;
    const int warps = (threads + WARP - 1) / WARP;
    int most = THREADS_OF_PROCESSOR / (warps * WARP);
    if (most > BLOCKS_OF_PROCESSOR) most = BLOCKS_OF_PROCESSOR;
    const int by_shared = (int)(SHARED_OF_PROCESSOR / (shared + SHARED_RESERVED));
    *blocks = most < by_shared ? most : by_shared;
    return cudaSuccess;
}

/* ---- one device, which is always there ------------------------------------------------------------- */

static size_t limits[8] = {1024, MEGABYTE, 8 * MEGABYTE, 2, 2048, 64, 0, 0};

cudaError_t cudaGetDeviceCount(int *count) { return *count = 1, cudaSuccess; }
cudaError_t cudaGetDevice(int *device) { return *device = 0, cudaSuccess; }
cudaError_t cudaSetDevice(int device) { return device ? host_error(cudaErrorInvalidDevice) : host_broken(); }
cudaError_t cudaSetDeviceFlags(unsigned flags) { return (void)flags, cudaSuccess; }
cudaError_t cudaGetDeviceFlags(unsigned *flags) { return *flags = 0, cudaSuccess; }
cudaError_t cudaChooseDevice(int *device, const struct cudaDeviceProp *wish) {
    return (void)wish, *device = 0, cudaSuccess;
}
cudaError_t cudaDeviceSynchronize(void) { return host_broken(); }
cudaError_t cudaThreadSynchronize(void) { return host_broken(); }
cudaError_t cudaDeviceReset(void) { return cudaSuccess; }
cudaError_t cudaDeviceSetLimit(enum cudaLimit limit, size_t value) {
    if ((unsigned)limit >= 8) return host_error(cudaErrorInvalidValue);
    return limits[limit] = value, cudaSuccess;
}
cudaError_t cudaDeviceGetLimit(size_t *value, enum cudaLimit limit) {
    if ((unsigned)limit >= 8) return host_error(cudaErrorInvalidValue);
    return *value = limits[limit], cudaSuccess;
}
cudaError_t cudaDeviceSetCacheConfig(enum cudaFuncCache cache) { return (void)cache, cudaSuccess; }
cudaError_t cudaDeviceGetCacheConfig(enum cudaFuncCache *cache) {
    return *cache = cudaFuncCachePreferNone, cudaSuccess;
}
cudaError_t cudaDeviceSetSharedMemConfig(enum cudaSharedMemConfig config) { return (void)config, cudaSuccess; }
cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
    return *least = *greatest = 0, cudaSuccess;
}
cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer) {
    return (void)device, (void)peer, *can = 0, cudaSuccess;
}
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
    return (void)peer, (void)flags, host_error(cudaErrorInvalidDevice);
}
cudaError_t cudaDeviceDisablePeerAccess(int peer) { return (void)peer, host_error(cudaErrorPeerAccessNotEnabled); }
/* Of two devices; there is one. */
cudaError_t cudaDeviceGetP2PAttribute(int *value, enum cudaDeviceP2PAttr attribute, int device, int peer) {
    (void)attribute, (void)device, (void)peer, *value = 0;
    return host_error(cudaErrorInvalidDevice);
}
cudaError_t cudaDeviceGetPCIBusId(char *id, int length, int device) {
    if (device) return host_error(cudaErrorInvalidDevice);
    return snprintf(id, (size_t)length, "0000:00:00.0"), cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int *version) { return *version = 12000, cudaSuccess; }
cudaError_t cudaRuntimeGetVersion(int *version) { return *version = 12000, cudaSuccess; }
cudaError_t cudaCtxResetPersistingL2Cache(void) { return cudaSuccess; }
cudaError_t cudaProfilerStart(void) { return cudaSuccess; }
cudaError_t cudaProfilerStop(void) { return cudaSuccess; }
