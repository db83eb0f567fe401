/* cudaMemcpy and cudaMemset: what is copied where is held against what memory it is. */
#include "host.h"

#include <stdio.h>
#include <string.h>

/* Why `bytes` from `pointer` on are not what the direction of a copy says; NULL if they are. */
static const char *unfit(const Memory *m, const void *pointer, size_t bytes, bool device, bool host,
                         char *why, size_t size) {
    if (m && m->kind == HEAP_MEMORY)
        snprintf(why, size, "%p is on the heap of the device, which kernels alone may touch", pointer);
    else if (m && m->given_back)
        snprintf(why, size, "%s was given back with cudaFree", m->name);
    else if (m && (uintptr_t)pointer + bytes > m->high)
        snprintf(why, size, "%zu bytes from byte %zu of %s on, which has %zu", bytes,
                 (size_t)((uintptr_t)pointer - m->low), m->name, (size_t)(m->high - m->low));
    else if (!m && device)
        snprintf(why, size, "the direction says memory of the device, %p is memory of the host", pointer);
    else if (m && m->kind == DEVICE_MEMORY && host)
        snprintf(why, size, "the direction says memory of the host, %s is memory of the device", m->name);
    else
        return NULL;
    return why;
}

/* A copy to the host of bytes that nobody has written. */
static void look_at_source(const Memory *m, const char *from, size_t bytes, const char *function,
                           const char *file, int line) {
    if (!m || !m->state || !host_checks()) return;
    const uint8_t *state = m->state + ((uintptr_t)from - m->low);
    size_t missing = 0, first = 0;
    for (size_t i = 0; i < bytes; i++)
        if (!(state[i] & INITIALISED) && !missing++) first = i;
    if (!missing) return;
    char text[300];
    const size_t element = m->element ? m->element : 1;
    snprintf(text, sizeof text, "%s takes %zu bytes of %s to the host, %zu of which nobody has written; the "
             "first is in element %zu", function, bytes, m->name, missing,
             ((uintptr_t)from - m->low + first) / element);
    host_finding(UNWRITTEN_OUTPUT, m->name, (uint32_t)element, m->low, m->high, (uintptr_t)from + first,
                 file, line, text);
}

/* What is known of the bytes goes with them. */
static void copy_state(const Memory *to_memory, const void *to, const Memory *from_memory,
                       const void *from, size_t bytes) {
    if (!to_memory || !to_memory->state) return;
    uint8_t *state = to_memory->state + ((uintptr_t)to - to_memory->low);
    if (from_memory && from_memory->state)
        memcpy(state, from_memory->state + ((uintptr_t)from - from_memory->low), bytes);
    else
        memset(state, INITIALISED, bytes);
}

cudaError_t tg_memory_copy(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                           size_t height, int kind, const char *function, const char *file, int line) {
    if (host_broken()) return host_broken();
    if (!width || !height) return cudaSuccess;
    if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault)
        return host_error_at(cudaErrorInvalidMemcpyDirection, function, file, line, "no such direction");
    if (height > 1 && (width > to_pitch || width > from_pitch))
        return host_error_at(cudaErrorInvalidPitchValue, function, file, line, "rows longer than their pitch");
    host_lock();
    Memory *target = memory_of(to), *source = memory_of(from);
    const size_t to_bytes = to_pitch * (height - 1) + width, from_bytes = from_pitch * (height - 1) + width;
    char text[200];
    const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
    const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
    const bool any = kind == cudaMemcpyDefault;
    const char *why = unfit(target, to, to_bytes, to_device, !any && !to_device, text, sizeof text);
    if (!why) why = unfit(source, from, from_bytes, from_device, !any && !from_device, text, sizeof text);
    if (why) {
        host_unlock();
        return host_error_at(cudaErrorInvalidValue, function, file, line, why);
    }
    memory_open(target);
    memory_open(source);
    for (size_t row = 0; row < height; row++) {
        char *to_row = (char *)to + row * to_pitch;
        const char *from_row = (const char *)from + row * from_pitch;
        if (!target || target->kind == HOST_MEMORY)
            look_at_source(source, from_row, width, function, file, line);
        memmove(to_row, from_row, width);
        copy_state(target, to_row, source, from_row, width);
    }
    memory_close(target);
    memory_close(source);
    host_unlock();
    return cudaSuccess;
}

cudaError_t tg_memory_set(void *to, size_t pitch, int value, size_t width, size_t height,
                          const char *function, const char *file, int line) {
    if (host_broken()) return host_broken();
    if (!width || !height) return cudaSuccess;
    host_lock();
    Memory *m = memory_of(to);
    char text[200];
    const char *why = unfit(m, to, pitch * (height - 1) + width, true, false, text, sizeof text);
    if (why) {
        host_unlock();
        return host_error_at(cudaErrorInvalidValue, function, file, line, why);
    }
    memory_open(m);
    for (size_t row = 0; row < height; row++) {
        memset((char *)to + row * pitch, value, width);
        copy_state(m, (char *)to + row * pitch, NULL, NULL, width);
    }
    memory_close(m);
    host_unlock();
    return cudaSuccess;
}
