/* Error codes.  The error of a call is told once by cudaGetLastError; that of a kernel which was
 * stopped stays, and every later call fails with it, as on a GPU. */
#include "host.h"

static __thread cudaError_t last;
static cudaError_t broken;

static const struct { cudaError_t error; const char *name, *text; } ERRORS[] = {
#define ERROR(name, text) {name, #name, text}
    ERROR(cudaSuccess, "no error"),
    ERROR(cudaErrorInvalidValue, "invalid argument"),
    ERROR(cudaErrorMemoryAllocation, "out of memory"),
    ERROR(cudaErrorInitializationError, "initialization error"),
    ERROR(cudaErrorInvalidConfiguration, "invalid configuration argument"),
    ERROR(cudaErrorInvalidPitchValue, "invalid pitch argument"),
    ERROR(cudaErrorInvalidSymbol, "invalid device symbol"),
    ERROR(cudaErrorInvalidDevicePointer, "invalid device pointer"),
    ERROR(cudaErrorInvalidMemcpyDirection, "invalid copy direction for memcpy"),
    ERROR(cudaErrorInsufficientDriver, "CUDA driver version is insufficient for CUDA runtime version"),
    ERROR(cudaErrorMissingConfiguration, "__global__ function call is not configured"),
    ERROR(cudaErrorInvalidDeviceFunction, "invalid device function"),
    ERROR(cudaErrorNoDevice, "no CUDA-capable device is detected"),
    ERROR(cudaErrorInvalidDevice, "invalid device ordinal"),
    ERROR(cudaErrorInvalidResourceHandle, "invalid resource handle"),
    ERROR(cudaErrorNotReady, "device not ready"),
    ERROR(cudaErrorIllegalAddress, "an illegal memory access was encountered"),
    ERROR(cudaErrorLaunchOutOfResources, "too many resources requested for launch"),
    ERROR(cudaErrorLaunchTimeout, "the launch timed out and was terminated"),
    ERROR(cudaErrorPeerAccessAlreadyEnabled, "peer access is already enabled"),
    ERROR(cudaErrorPeerAccessNotEnabled, "peer access has not been enabled"),
    ERROR(cudaErrorAssert, "device-side assert triggered"),
    ERROR(cudaErrorHostMemoryAlreadyRegistered, "part or all of the requested memory range is already mapped"),
    ERROR(cudaErrorHostMemoryNotRegistered, "pointer does not correspond to a registered memory region"),
    ERROR(cudaErrorHardwareStackError, "hardware stack error"),
    ERROR(cudaErrorIllegalInstruction, "an illegal instruction was encountered"),
    ERROR(cudaErrorMisalignedAddress, "misaligned address"),
    ERROR(cudaErrorLaunchFailure, "unspecified launch failure"),
    ERROR(cudaErrorCooperativeLaunchTooLarge, "too many blocks in cooperative launch"),
    ERROR(cudaErrorNotSupported, "operation not supported"),
    ERROR(cudaErrorUnknown, "unknown error"),
#undef ERROR
};
enum { ERROR_COUNT = sizeof ERRORS / sizeof *ERRORS };

const char *cudaGetErrorName(cudaError_t error) {
    for (int i = 0; i < ERROR_COUNT; i++)
        if (ERRORS[i].error == error) return ERRORS[i].name;
    return "unrecognized error code";
}

const char *cudaGetErrorString(cudaError_t error) {
    for (int i = 0; i < ERROR_COUNT; i++)
        if (ERRORS[i].error == error) return ERRORS[i].text;
    return "unrecognized error code";
}

cudaError_t host_error(cudaError_t error) {
    if (error) last = error;
    return error;
}

cudaError_t host_error_at(cudaError_t error, const char *function, const char *file, int line,
                          const char *why) {
    host_says(file, line, "%s: %s (%s)", function, cudaGetErrorString(error), why);
    return host_error(error);
}

cudaError_t host_broken(void) { return broken ? host_error(broken) : cudaSuccess; }

void host_break(cudaError_t error) {
    if (!broken) broken = error;
    last = broken;
}

cudaError_t cudaPeekAtLastError(void) { return broken ? broken : last; }

cudaError_t cudaGetLastError(void) {
    const cudaError_t error = cudaPeekAtLastError();
    last = cudaSuccess;
    return error;
}
