// Memory of the device and pinned memory of the host, both from the host's heap, each piece kept in
// a list: what lies in none may be touched by no copy and no launch.
#include "machine.h"

#include <cstdlib>
#include <cstring>

namespace {

struct Pieces {
    std::map<const char *, size_t> sizes;  // by the first byte
    std::mutex guard;

    void add(void *first, size_t bytes) {
        std::lock_guard<std::mutex> held(guard);
        sizes[static_cast<char *>(first)] = bytes;
    }

    // Forget a piece; its bytes, or -1 if there is none.
    long remove(void *first) {
        std::lock_guard<std::mutex> held(guard);
        const auto found = sizes.find(static_cast<char *>(first));
        if (found == sizes.end()) return -1;
        const long bytes = long(found->second);
        sizes.erase(found);
        return bytes;
    }

    bool holds(const void *first, size_t bytes) {
        std::lock_guard<std::mutex> held(guard);
        const char *at = static_cast<const char *>(first);
        auto after = sizes.upper_bound(at);
        if (after == sizes.begin()) return false;
        const auto &[start, size] = *--after;
        return at + bytes <= start + size;
    }
};

Pieces device, pinned;
std::atomic<size_t> used{0}, total{size_t(4) << 30};

constexpr size_t ALIGNED = 512;  // as cudaMalloc does
constexpr int FRESH = 0xff;      // new memory means nothing: floats are NaN, labels out of range

// Whether both ends of a copy are there; a captured one is read again at each launch of the graph.
cudaError_t check(const void *to, const void *from, size_t bytes, cudaMemcpyKind kind, bool later) {
    const bool reads_host = kind == cudaMemcpyHostToDevice;
    const bool writes_host = kind == cudaMemcpyDeviceToHost;
    if (bytes == 0 || kind == cudaMemcpyHostToHost) return cudaSuccess;
    if (kind != cudaMemcpyDefault && !writes_host && !on_device(to, bytes))
        return violation(cudaErrorInvalidValue, "a copy writes outside of the device's memory");
    if (kind != cudaMemcpyDefault && !reads_host && !on_device(from, bytes))
        return violation(cudaErrorInvalidValue, "a copy reads outside of the device's memory");
    const void *host = reads_host ? from : writes_host ? to : nullptr;
    if (later && host && !is_pinned(host, bytes))
        return violation(cudaErrorInvalidValue, "a graph would copy memory that is not pinned");
    return cudaSuccess;
}

}  // namespace

bool on_device(const void *first, size_t bytes) { return device.holds(first, bytes); }
bool is_pinned(const void *first, size_t bytes) { return pinned.holds(first, bytes); }

API void machine_memory(size_t bytes) { total = bytes; }
API int machine_on_device(const void *first, size_t bytes) { return on_device(first, bytes); }

API cudaError_t cudaMalloc(void **first, size_t bytes) {
    COUNTED;  // allowed while a stream captures: CuPy captures in relaxed mode
    if (used + bytes > total) return cudaErrorMemoryAllocation;
    if (posix_memalign(first, ALIGNED, bytes ? bytes : 1)) return cudaErrorMemoryAllocation;
    if (!idle) std::memset(*first, FRESH, bytes);
    device.add(*first, bytes);
    used += bytes;
    return cudaSuccess;
}

API cudaError_t cudaFree(void *first) {
    COUNTED;
    if (!first) return cudaSuccess;
    const long bytes = device.remove(first);
    if (bytes < 0) return violation(cudaErrorInvalidValue, "freed what cudaMalloc has not given");
    used -= size_t(bytes);
    std::free(first);
    return cudaSuccess;
}

API cudaError_t cudaMemGetInfo(size_t *left, size_t *all) {
    *all = total;
    *left = total - used;
    return cudaSuccess;
}

API cudaError_t cudaHostAlloc(void **first, size_t bytes, unsigned) {
    COUNTED;
    if (posix_memalign(first, 4096, bytes ? bytes : 1)) return cudaErrorMemoryAllocation;
    pinned.add(*first, bytes);
    return cudaSuccess;
}

API cudaError_t cudaFreeHost(void *first) {
    if (first && pinned.remove(first) < 0)
        return violation(cudaErrorInvalidValue, "freed what cudaHostAlloc has not given");
    std::free(first);
    return cudaSuccess;
}

API cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *found, const void *first) {
    COUNTED;
    std::memset(found, 0, sizeof *found);
    found->type = on_device(first, 1)   ? cudaMemoryTypeDevice
                  : is_pinned(first, 1) ? cudaMemoryTypeHost
                                        : cudaMemoryTypeUnregistered;
    if (found->type == cudaMemoryTypeDevice) found->devicePointer = const_cast<void *>(first);
    return cudaSuccess;
}

// ---- copies

API cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                                cudaStream_t stream) {
    COUNTED;
    const cudaError_t wrong = check(to, from, bytes, kind, stream_of(stream)->capturing);
    if (wrong != cudaSuccess) return wrong;
    return queue(stream, Work{Work::COPY, to, from, bytes, 0, 0});
}

API cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind) {
    COUNTED;
    const cudaError_t wrong = check(to, from, bytes, kind, false);
    if (wrong != cudaSuccess) return wrong;
    return queue(nullptr, Work{Work::COPY, to, from, bytes, 0, 0});
}

API cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream) {
    COUNTED;
    if (bytes && !on_device(to, bytes))
        return violation(cudaErrorInvalidValue, "a fill lies outside of the device's memory");
    return queue(stream, Work{Work::FILL, to, nullptr, bytes, value, 0});
}

API cudaError_t cudaMemset(void *to, int value, size_t bytes) {
    return cudaMemsetAsync(to, value, bytes, nullptr);
}
