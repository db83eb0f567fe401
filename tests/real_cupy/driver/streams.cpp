// Streams, events and captures.  A stream runs what it is given at once, unless it captures: then
// it keeps it, and every call that would need its result spoils the capture, as CUDA says in
// "CUDA C++ programming guide", chapter "CUDA graphs", "prohibited and unhandled operations".
#include "machine.h"

#include <chrono>

namespace {

CUstream_st legacy;
std::atomic<int> capturing{0}, capturing_blocking{0};

double now() {
    using namespace std::chrono;
    return duration<double>(steady_clock::now().time_since_epoch()).count();
}

}  // namespace

CUstream_st *stream_of(cudaStream_t handle) {
    const bool is_default = !handle || handle == cudaStreamLegacy || handle == cudaStreamPerThread;
    return is_default ? &legacy : handle;
}

bool somebody_captures() { return capturing > 0; }

cudaError_t check_legacy(const CUstream_st *stream) {
    if (stream != &legacy || capturing_blocking == 0) return cudaSuccess;
    return violation(cudaErrorStreamCaptureImplicit, "used the legacy stream in a capture");
}

cudaError_t forbidden(CUstream_st *stream, cudaError_t error, const char *what) {
    stream->broken = true;
    return violation(error, what);
}

cudaError_t queue(cudaStream_t handle, const Work &work) {
    CUstream_st *stream = stream_of(handle);
    const cudaError_t wrong = check_legacy(stream);
    if (wrong != cudaSuccess) return wrong;
    if (!stream->capturing) return run(work);
    stream->captured.push_back(work);
    return cudaSuccess;
}

// ---- streams

API cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags) {
    COUNTED;
    *stream = new CUstream_st;
    (*stream)->flags = flags;
    return cudaSuccess;
}

API cudaError_t cudaStreamCreate(cudaStream_t *stream) {
    return cudaStreamCreateWithFlags(stream, cudaStreamDefault);
}

API cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int) {
    return cudaStreamCreateWithFlags(stream, flags);
}

API cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned *flags) {
    *flags = stream_of(stream)->flags;
    return cudaSuccess;
}

API cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    if (stream->capturing)
        return violation(cudaErrorStreamCaptureUnsupported, "destroyed a stream that captures");
    delete stream;
    return cudaSuccess;
}

API cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
    COUNTED;
    CUstream_st *stream = stream_of(handle);
    if (stream->capturing)
        return forbidden(stream, cudaErrorStreamCaptureUnsupported,
                         "waited for a stream that captures");
    return check_legacy(stream);
}

API cudaError_t cudaStreamQuery(cudaStream_t handle) {
    COUNTED;
    CUstream_st *stream = stream_of(handle);
    if (stream->capturing)
        return forbidden(stream, cudaErrorStreamCaptureUnsupported, "asked a stream that captures");
    return check_legacy(stream);
}

API CUresult cuStreamGetCtx(CUstream, CUcontext *context) {
    *context = reinterpret_cast<CUcontext>(1);
    return CUDA_SUCCESS;
}

// ---- captures

API cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode) {
    COUNTED;
    CUstream_st *stream = stream_of(handle);
    if (stream == &legacy)
        return violation(cudaErrorStreamCaptureUnsupported, "the legacy stream cannot capture");
    if (stream->capturing)
        return violation(cudaErrorIllegalState, "began to capture in a stream that captures");
    stream->capturing = true;
    stream->broken = false;
    stream->captured.clear();
    ++capturing;
    if (stream->blocking()) ++capturing_blocking;
    return cudaSuccess;
}

API cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t *graph) {
    CUstream_st *stream = stream_of(handle);
    *graph = nullptr;
    if (!stream->capturing)
        return violation(cudaErrorIllegalState, "ended a capture that had not begun");
    stream->capturing = false;
    --capturing;
    if (stream->blocking()) --capturing_blocking;
    if (stream->broken) return cudaErrorStreamCaptureInvalidated;
    *graph = new CUgraph_st{std::move(stream->captured)};
    stream->captured.clear();
    return cudaSuccess;
}

API cudaError_t cudaStreamIsCapturing(cudaStream_t handle, cudaStreamCaptureStatus *status) {
    COUNTED;
    CUstream_st *stream = stream_of(handle);
    *status = !stream->capturing ? cudaStreamCaptureStatusNone
              : stream->broken   ? cudaStreamCaptureStatusInvalidated
                                 : cudaStreamCaptureStatusActive;
    return check_legacy(stream);
}

// ---- events

API cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags) {
    COUNTED;
    *event = new CUevent_st;
    (*event)->flags = flags;
    return cudaSuccess;
}

API cudaError_t cudaEventCreate(cudaEvent_t *event) {
    return cudaEventCreateWithFlags(event, cudaEventDefault);
}

API cudaError_t cudaEventDestroy(cudaEvent_t event) {
    delete event;
    return cudaSuccess;
}

API cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t handle) {
    COUNTED;
    CUstream_st *stream = stream_of(handle);
    const cudaError_t wrong = check_legacy(stream);
    if (wrong != cudaSuccess) return wrong;
    event->recorded = true;
    event->captured = stream->capturing;
    event->seconds = now();
    return cudaSuccess;
}

API cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event, unsigned) {
    COUNTED;
    CUstream_st *stream = stream_of(handle);
    if (stream->capturing && event->recorded && !event->captured)
        return forbidden(stream, cudaErrorStreamCaptureIsolation,
                         "a capture waits for an event from outside");
    if (!stream->capturing && event->captured)  // CUDA: the stream joins the capture
        return violation(cudaErrorNotSupported, "a second stream in a capture is not simulated");
    return cudaSuccess;
}

API cudaError_t cudaEventQuery(cudaEvent_t event) {
    if (event->captured)
        return violation(cudaErrorCapturedEvent, "asked an event of a capture");
    return cudaSuccess;
}

API cudaError_t cudaEventSynchronize(cudaEvent_t event) {
    COUNTED;
    if (event->captured)
        return violation(cudaErrorCapturedEvent, "waited for an event of a capture");
    return cudaSuccess;
}

API cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t begin, cudaEvent_t end) {
    for (const CUevent_st *event : {begin, end})
        if (!event->recorded || event->captured || (event->flags & cudaEventDisableTiming))
            return violation(cudaErrorInvalidResourceHandle, "no time between these two events");
    *milliseconds = float((end->seconds - begin->seconds) * 1e3);
    return cudaSuccess;
}
