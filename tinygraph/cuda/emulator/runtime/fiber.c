/* Fibers: stacks, and the switch from one to another.
 *
 * A switch saves the registers that a called function must preserve on the stack of the fiber that
 * stops, exchanges the stack pointers, and takes the registers of the other from its stack: about
 * ten instructions, where the kernel of the operating system would need thousands.
 */
#define _GNU_SOURCE
#include "runtime.h"

#include <stdlib.h>
#include <sys/mman.h>

#if defined(__x86_64__)
__asm__(".text\n"
        ".globl fiber_switch\n"
        ".hidden fiber_switch\n"
        ".type fiber_switch,@function\n"
        "fiber_switch:\n"
        "  pushq %rbp\n  pushq %rbx\n  pushq %r12\n  pushq %r13\n  pushq %r14\n  pushq %r15\n"
        "  movq %rsp, (%rdi)\n" /* *save_sp = stack pointer */
        "  movq %rsi, %rsp\n"   /* stack pointer = to_sp */
        "  popq %r15\n  popq %r14\n  popq %r13\n  popq %r12\n  popq %rbx\n  popq %rbp\n"
        "  ret\n"); /* to the address that lies next on the new stack */
enum { SAVED_REGISTERS = 6 };
#elif defined(__aarch64__)
__asm__(".text\n"
        ".globl fiber_switch\n"
        ".hidden fiber_switch\n"
        ".type fiber_switch,%function\n"
        "fiber_switch:\n"
        "  sub sp, sp, #160\n"
        "  stp x19, x20, [sp, #0]\n  stp x21, x22, [sp, #16]\n  stp x23, x24, [sp, #32]\n"
        "  stp x25, x26, [sp, #48]\n  stp x27, x28, [sp, #64]\n  stp x29, x30, [sp, #80]\n"
        "  stp d8, d9, [sp, #96]\n  stp d10, d11, [sp, #112]\n"
        "  stp d12, d13, [sp, #128]\n  stp d14, d15, [sp, #144]\n"
        "  mov x9, sp\n  str x9, [x0]\n"
        "  mov sp, x1\n"
        "  ldp x19, x20, [sp, #0]\n  ldp x21, x22, [sp, #16]\n  ldp x23, x24, [sp, #32]\n"
        "  ldp x25, x26, [sp, #48]\n  ldp x27, x28, [sp, #64]\n  ldp x29, x30, [sp, #80]\n"
        "  ldp d8, d9, [sp, #96]\n  ldp d10, d11, [sp, #112]\n"
        "  ldp d12, d13, [sp, #128]\n  ldp d14, d15, [sp, #144]\n"
        "  add sp, sp, #160\n"
        "  ret\n"); /* to x30, the link register */
#else
#error "the emulator knows x86-64 and arm64; another processor needs its own fiber_switch"
#endif

/* Fill the stack of a new fiber so that the first switch to it enters `start`. */
void fiber_prepare(Fiber *fiber, void (*start)(void)) {
    /* Stacks begin at different offsets of a page, or equal places in all of them would compete
     * for the same few lines of the cache. */
    uintptr_t top = (uintptr_t)fiber->stack + STACK_BYTES - 256 - fiber->public.linear % 61 * 128;
    void **sp = (void **)(top & ~(uintptr_t)15);
#if defined(__x86_64__)
    *--sp = NULL; /* the return address of `start`, which never returns; keeps the alignment */
    *--sp = (void *)start;
    for (int i = 0; i < SAVED_REGISTERS; i++) *--sp = NULL;
#else
    sp -= 20;
    for (int i = 0; i < 20; i++) sp[i] = NULL;
    sp[11] = (void *)start; /* x30 */
#endif
    fiber->sp = sp;
}

enum { GUARD_BYTES = 16 * 1024, STACKS_IN_CHUNK = 64, CHUNK_STEP = STACK_BYTES + GUARD_BYTES };

/* More stacks: each with a guard below it that nobody may touch.  NULL without memory. */
static bool more_stacks(Worker *w) {
    const size_t bytes = (size_t)CHUNK_STEP * STACKS_IN_CHUNK;
    if (w->chunk_count == sizeof w->chunks / sizeof *w->chunks) return false;
    char **list = realloc(w->free_stacks, (w->stack_count + STACKS_IN_CHUNK) * sizeof *list);
    if (!list) return false;
    w->free_stacks = list;
    char *low = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (low == MAP_FAILED) return false;
    for (int i = STACKS_IN_CHUNK - 1; i >= 0; i--) {
        char *stack = low + (size_t)i * CHUNK_STEP + GUARD_BYTES;
        if (mprotect(stack, STACK_BYTES, PROT_READ | PROT_WRITE)) return false;
        w->free_stacks[w->free_count++] = stack;
    }
    w->chunks[w->chunk_count].low = low;
    w->chunks[w->chunk_count++].high = low + bytes;
    w->stack_count += STACKS_IN_CHUNK;
    return true;
}

char *stack_take(Worker *w) {
    if (!w->free_count && !more_stacks(w)) abort(); /* 140 kB a stack: the machine has no memory */
    return w->free_stacks[--w->free_count];
}

void stack_give(Worker *w, char *stack) { w->free_stacks[w->free_count++] = stack; }

/* Whether an address lies in the guard below the stack of this fiber: the stack has overflowed. */
bool stack_guard_hit(const Fiber *fiber, uintptr_t address) {
    const uintptr_t stack = (uintptr_t)fiber->stack;
    return address < stack && stack - address <= GUARD_BYTES;
}
