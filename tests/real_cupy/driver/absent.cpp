// Functions that CuPy's module names, and that nothing here calls: "not supported".  They have no
// parameters, for they read none; so this file must not see CUDA's declarations.

#define ABSENT(name) \
    extern "C" __attribute__((visibility("default"))) int name() { return 801; }

ABSENT(cudaCreateSurfaceObject) ABSENT(cudaCreateTextureObject) ABSENT(cudaDestroySurfaceObject)
ABSENT(cudaDestroyTextureObject) ABSENT(cudaDeviceDisablePeerAccess)
ABSENT(cudaDeviceEnablePeerAccess) ABSENT(cudaDeviceGetByPCIBusId)
ABSENT(cudaDeviceGetDefaultMemPool) ABSENT(cudaDeviceGetLimit) ABSENT(cudaDeviceGetMemPool)
ABSENT(cudaDeviceGetPCIBusId) ABSENT(cudaDeviceSetLimit) ABSENT(cudaDeviceSetMemPool)
ABSENT(cudaFreeArray) ABSENT(cudaFreeAsync) ABSENT(cudaGetChannelDesc)
ABSENT(cudaGetTextureObjectResourceDesc) ABSENT(cudaGetTextureObjectTextureDesc)
ABSENT(cudaGraphDebugDotPrint) ABSENT(cudaHostRegister) ABSENT(cudaHostUnregister)
ABSENT(cudaIpcCloseMemHandle) ABSENT(cudaIpcGetEventHandle) ABSENT(cudaIpcGetMemHandle)
ABSENT(cudaIpcOpenEventHandle) ABSENT(cudaIpcOpenMemHandle) ABSENT(cudaLaunchHostFunc)
ABSENT(cudaMalloc3DArray) ABSENT(cudaMallocArray) ABSENT(cudaMallocAsync)
ABSENT(cudaMallocFromPoolAsync) ABSENT(cudaMallocManaged) ABSENT(cudaMemAdvise)
ABSENT(cudaMemcpy2D) ABSENT(cudaMemcpy2DAsync) ABSENT(cudaMemcpy2DFromArray)
ABSENT(cudaMemcpy2DFromArrayAsync) ABSENT(cudaMemcpy2DToArray) ABSENT(cudaMemcpy2DToArrayAsync)
ABSENT(cudaMemcpy3D) ABSENT(cudaMemcpy3DAsync) ABSENT(cudaMemcpyPeer) ABSENT(cudaMemcpyPeerAsync)
ABSENT(cudaMemPoolCreate) ABSENT(cudaMemPoolDestroy) ABSENT(cudaMemPoolGetAttribute)
ABSENT(cudaMemPoolSetAttribute) ABSENT(cudaMemPoolTrimTo) ABSENT(cudaMemPrefetchAsync)
ABSENT(cudaStreamAddCallback) ABSENT(cudaStreamGetPriority)
