// One GPU that is none: its memory is memory of the host, and what is queued in a stream runs at
// once, in the order of the calls.  That is one of the orders that CUDA allows, so a program with
// the right events gives its right numbers here; one that lacks an event may too.
//
//     device.cpp    what the GPU is, errors and their words, what Python asks of the machine
//     memory.cpp    memory of the device, pinned memory, copies
//     streams.cpp   streams, events, captures
//     graphs.cpp    what was captured, run again
//     kernels.cpp   modules, functions, launches; cubin.cpp reads what a cubin says of a kernel
//     absent.cpp    functions that CuPy's module names and nobody here calls
//
// A use that CUDA forbids gets CUDA's error, and is written down: `violation`.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <atomic>
#include <cstddef>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#define API extern "C" __attribute__((visibility("default")))

// How often an API function was called; `COUNTED` stands first in those that are worth counting.
struct Calls {
    explicit Calls(const char *name);
    const char *const name;
    std::atomic<long> count{0};
    Calls *const next;
};
#define COUNTED                   \
    static Calls calls(__func__); \
    ++calls.count

// ---- what happens on the device

struct Work {
    enum Kind { COPY, FILL, LAUNCH } kind;
    void *to;
    const void *from;
    size_t bytes;
    int value;    // FILL: of each byte
    long launch;  // LAUNCH: the number that Python gave it
};

cudaError_t run(const Work &work);

// ---- what the handles of CUDA stand for

struct CUstream_st {
    unsigned flags = 0;
    bool capturing = false;
    bool broken = false;  // a forbidden call has spoilt the capture
    std::vector<Work> captured;
    bool blocking() const { return !(flags & cudaStreamNonBlocking); }
};

struct CUevent_st {
    unsigned flags = 0;
    bool recorded = false;
    bool captured = false;  // it was recorded in a stream while that captured
    double seconds = 0;
};

struct CUgraph_st {
    std::vector<Work> work;
};

struct CUgraphExec_st {
    std::vector<Work> work;
};

struct CUmod_st {
    std::string image;  // the cubin
};

struct CUfunc_st {
    CUmod_st *module;
    std::string name;
    int registers = 0;        // of a thread
    int static_shared = 0;    // bytes of a block
    int dynamic_shared = 0;   // the most that a launch may ask for
    int most_threads = 1024;  // of a block
};

// The legacy stream for the null handle and for CUDA's two names of default streams.
CUstream_st *stream_of(cudaStream_t handle);

// Queue work in a stream: captured, or run at once.
cudaError_t queue(cudaStream_t handle, const Work &work);

// The error of a call that the capture of a stream forbids; the capture is spoilt.
cudaError_t forbidden(CUstream_st *stream, cudaError_t error, const char *what);

bool somebody_captures();

// The error of a call on the legacy stream while a stream that waits for it captures.
cudaError_t check_legacy(const CUstream_st *stream);

// ---- rules

// Write down what CUDA does not allow; returns the error for the caller to return.
cudaError_t violation(cudaError_t error, const std::string &what);
CUresult violation(CUresult error, const std::string &what);

// Whether bytes lie in one living piece of device memory, or of pinned memory.
bool on_device(const void *first, size_t bytes);
bool is_pinned(const void *first, size_t bytes);

// What a cubin says of a kernel; false if it has none of that name.
bool describe(const std::string &image, CUfunc_st *function);

// ---- Python's part

// Told of each launch.  Gives it a number, and runs it unless it is captured; or minus the error.
using Launched = long (*)(CUfunc_st *function, const unsigned *grid, const unsigned *block,
                          unsigned shared, void **parameters, int captured);
// Runs a captured launch again; gives the error.
using Replayed = int (*)(long launch);

extern Launched launched;
extern Replayed replayed;
extern bool idle;  // nothing on the device is done: for times of the host
