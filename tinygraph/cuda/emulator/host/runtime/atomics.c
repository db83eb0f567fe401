/* The processor's atomics (std::atomic, __sync_fetch_and_add), which a compiler turns into calls of its
 * thread sanitizer.  The host uses them freely; in a kernel the checker looks at the access.
 *
 * Source: LLVM, compiler-rt, tsan_interface_atomic.h (names and arguments).
 */
#include "host.h"

#define LOOK(p, n) \
    if (tg_worker) check_access((const void *)p, n, ATOMIC, (Place){NULL, 0, (uintptr_t)__builtin_return_address(0)})

#define FETCH(bits, T, name)                                                            \
    T __tsan_atomic##bits##_fetch_##name(volatile T *p, T value, int order) {           \
        (void)order;                                                                    \
        LOOK(p, bits / 8);                                                              \
        return __atomic_fetch_##name(p, value, __ATOMIC_SEQ_CST);                       \
    }
#define ATOMICS(bits, T)                                                                \
    T __tsan_atomic##bits##_load(const volatile T *p, int order) {                      \
        (void)order;                                                                    \
        LOOK(p, bits / 8);                                                              \
        return __atomic_load_n(p, __ATOMIC_SEQ_CST);                                    \
    }                                                                                   \
    void __tsan_atomic##bits##_store(volatile T *p, T value, int order) {               \
        (void)order;                                                                    \
        LOOK(p, bits / 8);                                                              \
        __atomic_store_n(p, value, __ATOMIC_SEQ_CST);                                   \
    }                                                                                   \
    T __tsan_atomic##bits##_exchange(volatile T *p, T value, int order) {               \
        (void)order;                                                                    \
        LOOK(p, bits / 8);                                                              \
        return __atomic_exchange_n(p, value, __ATOMIC_SEQ_CST);                         \
    }                                                                                   \
    int __tsan_atomic##bits##_compare_exchange_strong(volatile T *p, T *expected, T to, \
                                                      int order, int otherwise) {       \
        (void)order, (void)otherwise;                                                   \
        LOOK(p, bits / 8);                                                              \
        return __atomic_compare_exchange_n(p, expected, to, 0, __ATOMIC_SEQ_CST,        \
                                           __ATOMIC_SEQ_CST);                           \
    }                                                                                   \
    int __tsan_atomic##bits##_compare_exchange_weak(volatile T *p, T *expected, T to,   \
                                                    int order, int otherwise) {         \
        return __tsan_atomic##bits##_compare_exchange_strong(p, expected, to, order, otherwise); \
    }                                                                                   \
    FETCH(bits, T, add) FETCH(bits, T, sub) FETCH(bits, T, and) FETCH(bits, T, or)      \
    FETCH(bits, T, xor) FETCH(bits, T, nand)

ATOMICS(8, uint8_t)
ATOMICS(16, uint16_t)
ATOMICS(32, uint32_t)
ATOMICS(64, uint64_t)

void __tsan_atomic_thread_fence(int order) {
    (void)order;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
void __tsan_atomic_signal_fence(int order) { (void)order; }
