// What the GPU is (an H200, by NVIDIA's data sheet and the limits of compute capability 9.0), the
// words of errors, and the functions by which Python looks into the machine.
#include "machine.h"

#include <cstdio>
#include <cstring>

namespace {

Calls *all_calls = nullptr;
std::mutex guard;
std::vector<std::string> violations;
std::string last_words;  // of the launch that failed last

constexpr int MAJOR = 9, MINOR = 0, MULTIPROCESSORS = 132;
constexpr int SHARED = 48 << 10, SHARED_OPT_IN = 227 << 10, L2 = 60 << 20;

void note(const std::string &what) {
    std::lock_guard<std::mutex> held(guard);
    violations.push_back(what);
}

// The name that CUDA has for an error which this machine gives.
const char *name_of(int error) {
    switch (error) {
#define NAMED(name) \
    case name:      \
        return #name;
        NAMED(cudaSuccess)
        NAMED(cudaErrorInvalidValue)
        NAMED(cudaErrorMemoryAllocation)
        NAMED(cudaErrorInvalidResourceHandle)
        NAMED(cudaErrorIllegalState)
        NAMED(cudaErrorIllegalAddress)
        NAMED(cudaErrorLaunchOutOfResources)
        NAMED(cudaErrorLaunchFailure)
        NAMED(cudaErrorNotSupported)
        NAMED(cudaErrorStreamCaptureUnsupported)
        NAMED(cudaErrorStreamCaptureInvalidated)
        NAMED(cudaErrorStreamCaptureIsolation)
        NAMED(cudaErrorStreamCaptureImplicit)
        NAMED(cudaErrorCapturedEvent)
        NAMED(cudaErrorFileNotFound)
        NAMED(cudaErrorInvalidKernelImage)
        NAMED(cudaErrorSymbolNotFound)
#undef NAMED
    }
    return "cudaErrorUnknown";
}

const char *words_of(int error) {
    std::lock_guard<std::mutex> held(guard);
    const bool in_a_launch = error == cudaErrorLaunchFailure || error == cudaErrorIllegalAddress;
    if (in_a_launch && !last_words.empty()) return last_words.c_str();
    if (error != cudaSuccess && !violations.empty()) return violations.back().c_str();
    return "no more is known: this driver has no GPU";
}

}  // namespace

Launched launched = nullptr;
Replayed replayed = nullptr;
bool idle = false;

Calls::Calls(const char *name) : name(name), next(all_calls) { all_calls = this; }

cudaError_t violation(cudaError_t error, const std::string &what) {
    note(what);
    return error;
}

CUresult violation(CUresult error, const std::string &what) {
    note(what);
    return error;
}

// ---- for Python

API void machine_hooks(Launched on_launch, Replayed on_replay) {
    launched = on_launch;
    replayed = on_replay;
}

API void machine_idle(int yes) { idle = yes; }

API void machine_failed(const char *words) {
    std::lock_guard<std::mutex> held(guard);
    last_words = words;
}

API int machine_violations() {
    std::lock_guard<std::mutex> held(guard);
    return int(violations.size());
}

API void machine_violations_forget() {
    std::lock_guard<std::mutex> held(guard);
    violations.clear();
}

API const char *machine_violation(int i) { return violations[i].c_str(); }

// The counters, one after the other: `machine_calls(nullptr)` is the first.
API const Calls *machine_calls(const Calls *before) { return before ? before->next : all_calls; }
API const char *machine_calls_name(const Calls *one) { return one->name; }
API long machine_calls_count(const Calls *one) { return one->count; }

API void machine_calls_forget() {
    for (Calls *one = all_calls; one; one = one->next) one->count = 0;
}

// ---- CUDA: errors and versions

API const char *cudaGetErrorName(cudaError_t error) { return name_of(error); }
API const char *cudaGetErrorString(cudaError_t error) { return words_of(error); }
API cudaError_t cudaGetLastError() { return cudaSuccess; }

// The numbers of CUresult are those of cudaError_t.
API CUresult cuGetErrorName(CUresult error, const char **name) {
    *name = name_of(error);
    return CUDA_SUCCESS;
}

API CUresult cuGetErrorString(CUresult error, const char **words) {
    *words = words_of(error);
    return CUDA_SUCCESS;
}

API cudaError_t cudaDriverGetVersion(int *version) {
    *version = CUDART_VERSION;
    return cudaSuccess;
}

API cudaError_t cudaRuntimeGetVersion(int *version) { return cudaDriverGetVersion(version); }

API CUresult cuDriverGetVersion(int *version) {
    *version = CUDA_VERSION;
    return CUDA_SUCCESS;
}

// ---- CUDA: the device

API cudaError_t cudaGetDevice(int *device) {
    COUNTED;
    *device = 0;
    return cudaSuccess;
}

API cudaError_t cudaSetDevice(int device) {
    COUNTED;
    return device == 0 ? cudaSuccess : cudaErrorInvalidValue;
}

API cudaError_t cudaGetDeviceCount(int *count) {
    *count = 1;
    return cudaSuccess;
}

API cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr what, int) {
    switch (what) {
        case cudaDevAttrComputeCapabilityMajor: *value = MAJOR; break;
        case cudaDevAttrComputeCapabilityMinor: *value = MINOR; break;
        case cudaDevAttrMultiProcessorCount: *value = MULTIPROCESSORS; break;
        case cudaDevAttrMaxThreadsPerBlock: *value = 1024; break;
        case cudaDevAttrWarpSize: *value = 32; break;
        case cudaDevAttrMaxSharedMemoryPerBlock: *value = SHARED; break;
        case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = SHARED_OPT_IN; break;
        case cudaDevAttrMaxRegistersPerBlock: *value = 65536; break;
        default: *value = 0;  // what is not simulated is not there
    }
    return cudaSuccess;
}

API cudaError_t cudaGetDeviceProperties(cudaDeviceProp *found, int) {
    size_t free_bytes = 0;
    std::memset(found, 0, sizeof *found);
    std::snprintf(found->name, sizeof found->name, "no GPU: tinygraph's tests");
    cudaMemGetInfo(&free_bytes, &found->totalGlobalMem);
    found->major = MAJOR;
    found->minor = MINOR;
    found->multiProcessorCount = MULTIPROCESSORS;
    found->maxThreadsPerBlock = 1024;
    found->warpSize = 32;
    found->sharedMemPerBlock = SHARED;
    found->sharedMemPerBlockOptin = SHARED_OPT_IN;
    found->regsPerBlock = 65536;
    found->l2CacheSize = L2;
    return cudaSuccess;
}

API cudaError_t cudaDeviceSynchronize() {
    COUNTED;
    if (somebody_captures())
        return violation(cudaErrorStreamCaptureUnsupported, "waited for a device that captures");
    return cudaSuccess;
}

API cudaError_t cudaDeviceCanAccessPeer(int *can, int, int) {
    *can = 0;
    return cudaSuccess;
}

API CUresult cuCtxGetCurrent(CUcontext *context) {
    *context = reinterpret_cast<CUcontext>(1);
    return CUDA_SUCCESS;
}

API CUresult cuCtxSetCurrent(CUcontext) { return CUDA_SUCCESS; }

API CUresult cuCtxGetDevice(CUdevice *device) {
    *device = 0;
    return CUDA_SUCCESS;
}

API cudaError_t cudaProfilerStart() { return cudaSuccess; }
API cudaError_t cudaProfilerStop() { return cudaSuccess; }
