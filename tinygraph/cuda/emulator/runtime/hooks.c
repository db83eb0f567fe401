/* What the compiler calls before every access to memory.
 *
 * A kernel that is to be checked is compiled with -fsanitize=thread, which makes the compiler insert
 * __tsan_read4(address) and its like.  We do not link the library that belongs to this option but
 * define its functions here: the source of the kernel stays as it is.
 */
#include "check.h"

#include <string.h>

#define CALLER ((Place){NULL, 0, (uintptr_t)__builtin_return_address(0)})
#define HOOK(name, n, how) \
    void __tsan_##name##n(void *p) { check_access(p, n, how, CALLER); }
#define HOOK_BOTH(name, n, how)                                                                    \
    void __tsan_##name##n(void *p) {                                                               \
        check_access(p, n, READ | (how), CALLER);                                                  \
        check_access(p, n, WRITE | (how), CALLER);                                                 \
    }
#define HOOKS(n)                                                                                   \
    HOOK(read, n, READ) HOOK(write, n, WRITE) HOOK_BOTH(read_write, n, 0)                          \
    HOOK(unaligned_read, n, READ | UNALIGNED) HOOK(unaligned_write, n, WRITE | UNALIGNED)          \
    HOOK_BOTH(unaligned_read_write, n, UNALIGNED)                                                  \
    HOOK(volatile_read, n, READ | VOLATILE) HOOK(volatile_write, n, WRITE | VOLATILE)              \
    HOOK(unaligned_volatile_read, n, READ | VOLATILE | UNALIGNED)                                  \
    HOOK(unaligned_volatile_write, n, WRITE | VOLATILE | UNALIGNED)
HOOKS(1) HOOKS(2) HOOKS(4) HOOKS(8) HOOKS(16)

void __tsan_read_range(void *p, size_t n) { check_access(p, n, READ | UNALIGNED, CALLER); }
void __tsan_write_range(void *p, size_t n) { check_access(p, n, WRITE | UNALIGNED, CALLER); }

void *__tsan_memcpy(void *to, const void *from, size_t n) {
    check_access(from, n, READ | UNALIGNED, CALLER);
    check_access(to, n, WRITE | UNALIGNED, CALLER);
    return memcpy(to, from, n);
}
void *__tsan_memmove(void *to, const void *from, size_t n) {
    check_access(from, n, READ | UNALIGNED, CALLER);
    check_access(to, n, WRITE | UNALIGNED, CALLER);
    return memmove(to, from, n);
}
void *__tsan_memset(void *to, int value, size_t n) {
    check_access(to, n, WRITE | UNALIGNED, CALLER);
    return memset(to, value, n);
}

/* The start of a basic block, in builds that count operations or record what happens. */
void __sanitizer_cov_trace_pc(void) {
    if (tg_profiling) profile_code(CALLER.pc);
    /* where the frame of this function begins lies the frame pointer of the caller */
    record_code(CALLER.pc, *(const uintptr_t *)__builtin_frame_address(0));
}

void __tsan_init(void) {}
/* The table of virtual functions to which an object points. */
void __tsan_vptr_update(void *p, void *table) {
    (void)table;
    check_access(p, sizeof(void *), WRITE, CALLER);
}
void __tsan_vptr_read(void *p) { check_access(p, sizeof(void *), READ, CALLER); }

/* Which calls a thread is in, as return addresses. */
void __tsan_func_entry(void *caller) {
    Fiber *me = current_fiber();
    if (!me) return;
    if (me->depth < MAX_FRAMES) me->frames[me->depth] = (uintptr_t)caller;
    me->depth++;
}
void __tsan_func_exit(void) {
    if (tg_current) current_fiber()->depth--;
}

/* What atomics.h and vector_types.h call. */
void tg_access(const void *address, unsigned size, int is_write, const char *file, int line) {
    if (tg_observer) tg_observer->access(address, size, is_write ? WRITE : READ, (Place){file, line, 0});
}
void tg_atomic_access(const void *address, unsigned size, const char *file, int line) {
    if (tg_observer) tg_observer->access(address, size, ATOMIC, (Place){file, line, 0});
}
