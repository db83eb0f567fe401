/* When a kernel goes wrong: wild pointers, overflowing stacks, division by zero, endless loops.
 *
 * The processor reports the first three as signals, the watchdog sends one for the last.  The
 * handler notes what happened and leaves the kernel by switching to the worker's own stack, as if
 * the block were done: the process lives on, and the launch returns an error.
 *
 * A block that takes long may also hold a thread that waits for another one by reading a flag again
 * and again.  So the watchdog first takes the processor from the thread that runs (a time slice),
 * and gives up only when the time is over.
 */
#define _GNU_SOURCE
#include "runtime.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>

/* A fault whose address the kernel of the operating system cannot tell: on x86-64 one that is not
 * canonical, with more significant bits than the processor translates. */
enum { SI_KERNEL_CODE = 0x80 };
enum { WATCHDOG_SIGNAL = SIGURG, SLICE_MS = 50, SIGNAL_STACK_BYTES = 64 * 1024 };
/* When the time is over and the run time or a library runs, it is looked again: soon the kernel
 * runs, whose line is wanted. */
enum { MOST_LATE_LOOKS = 10 };

static const int FAULTS[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};
enum { FAULT_COUNT = sizeof FAULTS / sizeof *FAULTS };
static struct sigaction before[FAULT_COUNT]; /* who handled these signals before us */

static uintptr_t counter_of(const ucontext_t *context) {
#if defined(__x86_64__)
    return (uintptr_t)context->uc_mcontext.gregs[REG_RIP];
#else
    return (uintptr_t)context->uc_mcontext.pc;
#endif
}

static bool in_module(const Worker *w, uintptr_t pc) {
    return pc >= w->launch->module_low && pc < w->launch->module_high;
}

/* ---- faults ---------------------------------------------------------------------------------- */

static void hand_on(int signal, siginfo_t *info, void *context) {
    int i = 0;
    while (i < FAULT_COUNT - 1 && FAULTS[i] != signal) i++;
    if (before[i].sa_flags & SA_SIGINFO) {
        before[i].sa_sigaction(signal, info, context);
    } else if (before[i].sa_handler != SIG_DFL && before[i].sa_handler != SIG_IGN) {
        before[i].sa_handler(signal);
    } else { /* the instruction faults again, and the default action ends the process */
        sigaction(signal, &before[i], NULL);
    }
}

static void on_fault(int signal, siginfo_t *info, void *context) {
    Worker *w = tg_worker;
    if (!w || !w->in_kernel) {
        hand_on(signal, info, context);
        return;
    }
    const uintptr_t address = (uintptr_t)info->si_addr;
    const Place place = {NULL, 0, counter_of(context)};
    if (signal == SIGFPE)
        launch_fail(FAIL_ARITHMETIC, place, "integer division by zero, or its overflow");
    else if (signal == SIGILL || signal == SIGTRAP)
        launch_fail(FAIL_TRAP, place, "the kernel stopped itself (__trap)");
    else if (stack_guard_hit(current_fiber(), address))
        launch_fail(FAIL_STACK, place, "more than %d KiB of local variables, or endless recursion",
                    STACK_BYTES / 1024);
    else if (info->si_code == SI_KERNEL_CODE) /* the processor does not tell which address */
        launch_fail(FAIL_POINTER, place, "the address is far beyond all memory");
    else {
        w->argument = guards_find(&w->launch->guards, address, &w->offset);
        launch_fail(FAIL_POINTER, place, "address %#lx belongs to no array",
                    (unsigned long)address);
    }
    schedule_abandon();
}

/* ---- the watchdog ------------------------------------------------------------------------------ */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake = PTHREAD_COND_INITIALIZER;
static Worker *workers;
static bool running, idle;
static uint32_t forks; /* how often this process has been forked off another */
static atomic_uint active; /* workers that execute blocks now */

/* Seconds for which a thread has had a processor: a busy machine makes no block endless. */
static double seconds_of(pthread_t thread) {
    struct timespec now;
    clockid_t clock = CLOCK_MONOTONIC;
#if defined(_POSIX_THREAD_CPUTIME) && _POSIX_THREAD_CPUTIME >= 0
    if (pthread_getcpuclockid(thread, &clock) != 0) clock = CLOCK_MONOTONIC;
#else
    (void)thread;
#endif
    if (clock_gettime(clock, &now) != 0) clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* The signal of the watchdog: give way, or give up. */
static void on_watchdog(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)info;
    Worker *w = tg_worker;
    if (!w || !w->in_kernel) return;
    const uintptr_t pc = counter_of(context);
    if (atomic_load(&w->overdue)) {
        if (!in_module(w, pc) && w->late_looks++ < MOST_LATE_LOOKS) return;
        launch_fail(FAIL_TIMEOUT, (Place){NULL, 0, in_module(w, pc) ? pc : 0},
                    "a block is not done after %g seconds of computing", w->launch->timeout);
        if (tg_observer) tg_observer->endless((Place){NULL, 0, in_module(w, pc) ? pc + 1 : 0});
        schedule_abandon();
    }
    const int kept = errno;
    const bool amid = tg_observer && tg_observer->amid_a_store && tg_observer->amid_a_store();
    if (in_module(w, pc) && !amid) tg_nap(); /* the rest of this thread waits on its own stack */
    errno = kept;
}

static void look_at(Worker *w) {
    const uint64_t done = atomic_load(&w->blocks_done);
    if (!atomic_load(&w->working)) {
        w->watched = ~0ull;
        return;
    }
    const double now = seconds_of(w->thread);
    if (done != w->watched) {
        w->watched = done;
        w->watched_since = now;
        atomic_store(&w->overdue, false);
        return;
    }
    if (now - w->watched_since > w->launch->timeout) atomic_store(&w->overdue, true);
    pthread_kill(w->thread, WATCHDOG_SIGNAL);
}

static void *watchdog(void *unused) {
    (void)unused;
    pthread_mutex_lock(&lock);
    for (;;) {
        if (!atomic_load(&active)) {
            idle = true;
            pthread_cond_wait(&wake, &lock);
            idle = false;
        }
        pthread_mutex_unlock(&lock);
        nanosleep(&(struct timespec){.tv_nsec = SLICE_MS * 1000000l}, NULL);
        pthread_mutex_lock(&lock);
        for (Worker *w = workers; w; w = w->next) look_at(w);
    }
    return NULL;
}

/* ---- set-up ------------------------------------------------------------------------------------- */

static void after_fork(void) { /* the child has none of the parent's threads */
    pthread_mutex_init(&lock, NULL);
    pthread_cond_init(&wake, NULL); /* it would wake the parent's watchdog, which is not here */
    forks++;
    running = idle = false;
    workers = NULL;
    atomic_store(&active, 0);
}

static void install(void) {
    struct sigaction action = {.sa_sigaction = on_fault};
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < FAULT_COUNT; i++) sigaction(FAULTS[i], &action, &before[i]);
    struct sigaction slice = {.sa_sigaction = on_watchdog};
    slice.sa_flags = SA_SIGINFO | SA_NODEFER | SA_RESTART; /* on the stack of the fiber itself */
    sigemptyset(&slice.sa_mask);
    sigaction(WATCHDOG_SIGNAL, &slice, NULL);
    pthread_atfork(NULL, NULL, after_fork);
}

/* A thread of the operating system begins to execute blocks. */
void faults_watch(Worker *w) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, install);
    static __thread bool has_signal_stack;
    if (!has_signal_stack) { /* a fault may mean that the stack is full: handlers need their own */
        stack_t alternate = {.ss_sp = malloc(SIGNAL_STACK_BYTES), .ss_size = SIGNAL_STACK_BYTES};
        if (alternate.ss_sp) sigaltstack(&alternate, NULL);
        has_signal_stack = true;
    }
    w->thread = pthread_self();
    pthread_mutex_lock(&lock);
    bool listed = false;
    for (Worker *other = workers; other; other = other->next) listed |= other == w;
    if (!listed) {
        w->next = workers;
        workers = w;
    }
    if (!running) {
        pthread_t thread;
        running = pthread_create(&thread, NULL, watchdog, NULL) == 0;
        if (running) pthread_detach(thread);
    }
    pthread_mutex_unlock(&lock);
    w->forks = forks;
    w->watched = ~0ull;
}

/* The thread ends. */
void faults_unwatch(Worker *w) {
    pthread_mutex_lock(&lock);
    for (Worker **link = &workers; *link; link = &(*link)->next)
        if (*link == w) {
            *link = w->next;
            break;
        }
    pthread_mutex_unlock(&lock);
}

void faults_work_begins(Worker *w) {
    if (w->forks != forks) faults_watch(w);
    atomic_store(&w->overdue, false);
    w->late_looks = 0;
    atomic_store(&w->working, true);
    if (atomic_fetch_add(&active, 1) == 0) {
        pthread_mutex_lock(&lock); /* the watchdog has looked at `active` and sleeps, or will look */
        if (idle) pthread_cond_signal(&wake);
        pthread_mutex_unlock(&lock);
    }
}

void faults_work_ends(Worker *w) {
    pthread_mutex_lock(&lock); /* not while the watchdog looks at the launch, which may vanish */
    atomic_store(&w->working, false);
    pthread_mutex_unlock(&lock);
    atomic_fetch_sub(&active, 1);
}
