/* Messages of the host half, and findings on their way to the parent process, which knows the source.
 *
 * A record is a letter, the name of the launch, and what belongs to it: 'F' a Found of findings.c with
 * two names of files, 'E' a Failure.
 */
#define _GNU_SOURCE
#include "host.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

static int setting(const char *name, int otherwise) {
    const char *text = getenv(name);
    return text ? atoi(text) : otherwise;
}

bool host_checks(void) {
    static int checks = -1;
    if (checks < 0) checks = setting("TINYGRAPH_PROGRAM_CHECK", 0);
    return checks;
}

static const char *base_name(const char *path) {
    const char *slash = path ? strrchr(path, '/') : NULL;
    return slash ? slash + 1 : path;
}

/* One line on stderr, in the order of what the program prints itself. */
void host_says(const char *file, int line, const char *format, ...) {
    char text[600];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fflush(stdout);
    if (file)
        fprintf(stderr, "%s:%d: %s\n", base_name(file), line, text);
    else
        fprintf(stderr, "%s\n", text);
}

static pthread_mutex_t one_at_a_time;
static pthread_once_t lock_once = PTHREAD_ONCE_INIT;
static void make_lock(void) {
    pthread_mutexattr_t kind; /* a callback of a stream may call the API again */
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&one_at_a_time, &kind);
}
void host_lock(void) {
    pthread_once(&lock_once, make_lock);
    pthread_mutex_lock(&one_at_a_time);
}
void host_unlock(void) { pthread_mutex_unlock(&one_at_a_time); }

/* ---- records ------------------------------------------------------------------------------------ */

/* Where the executable has been loaded. */
uintptr_t host_program(void) {
    int tg_module(uintptr_t address, uintptr_t out[3]);
    uintptr_t place[3] = {0};
    tg_module(getauxval(AT_ENTRY), place);
    return place[0];
}

static void send(const void *bytes, size_t count) {
    static int to = -2;
    if (to == -2) {
        to = setting("TINYGRAPH_PROGRAM_REPORT", -1);
        const uint64_t base = host_program(); /* Python has addresses in the file */
        send("B", 1);
        send(&base, sizeof base);
    }
    for (const char *at = bytes; to >= 0 && count;) {
        const ssize_t done = write(to, at, count);
        if (done <= 0) return; /* nobody listens any more */
        at += done;
        count -= (size_t)done;
    }
}

static void send_text(const char *text) {
    const uint32_t length = text ? (uint32_t)strlen(text) : 0;
    send(&length, sizeof length);
    send(text, length);
}

static void send_bytes(const void *bytes, uint32_t size) {
    send(&size, sizeof size);
    send(bytes, size);
}

uint32_t tg_check_findings(const void **out);
uint32_t tg_finding_size(void);
void tg_finding_files(uint32_t number, const char **file, const char **other);

/* Send the findings of a launch; gives how many there are beside notes. */
uint32_t host_send_findings(const char *launch) {
    const void *table;
    const uint32_t count = tg_check_findings(&table), size = tg_finding_size();
    uint32_t mistakes = 0;
    for (uint32_t i = 0; i < count; i++) {
        const char *file, *other;
        tg_finding_files(i, &file, &other);
        mistakes += !(*(const int32_t *)((const char *)table + (size_t)i * size) & NOTE);
        send("F", 1);
        send_text(launch);
        send_bytes((const char *)table + (size_t)i * size, size);
        send_text(file);
        send_text(other);
    }
    return mistakes;
}

void host_send_failure(const char *launch, const Failure *failure) {
    send("E", 1);
    send_text(launch);
    send_bytes(failure, sizeof *failure);
}

/* A finding about memory that a call of the host meets. */
void host_finding(FindingKind kind, const char *name, uint32_t element, uintptr_t low, uintptr_t high,
                  uintptr_t at, const char *file, int line, const char *text) {
    Region r = {.low = low, .high = high, .element = element ? element : 1};
    snprintf(r.name, sizeof r.name, "%s", name);
    findings_forget();
    found_at(kind, (Place){file, line, 0}, (Place){0}, &r, at, "%s", text);
    host_send_findings("");
    findings_forget();
}

/* What the program prints is seen at once, also where it goes into a pipe. */
__attribute__((constructor)) static void print_by_lines(void) { setvbuf(stdout, NULL, _IOLBF, 0); }
