// Attributes that the emulator's headers share.
#pragma once

// A device intrinsic is an instruction, not a call: it is inlined in every build, -O0 included.
#define TG_INLINE inline __attribute__((always_inline))

// A function whose own memory accesses the checker must not see, because it reports them itself
// (an atomic, a row read by ldmatrix). It stays out of line in check builds: code that is inlined
// would be instrumented with its caller. clang instruments __atomic_* even under
// no_sanitize("thread"), hence the second attribute (clang 14 and later).
// Where values are followed (TINYGRAPH_FOLLOW) it is compiled as everything else.
#if !defined(TINYGRAPH_CHECK)
#define TG_UNINSTRUMENTED TG_INLINE
#elif defined(TINYGRAPH_FOLLOW)
#define TG_UNINSTRUMENTED inline __attribute__((noinline))
#elif defined(__clang__) && __has_attribute(disable_sanitizer_instrumentation)
#define TG_UNINSTRUMENTED inline __attribute__((noinline, disable_sanitizer_instrumentation))
#else
#define TG_UNINSTRUMENTED inline __attribute__((noinline, no_sanitize("thread")))
#endif

// The constraint of inline assembly for a register that holds a float or a 16-byte vector.
#if defined(__x86_64__)
#define TG_FLOAT_REGISTER "x"
#elif defined(__aarch64__)
#define TG_FLOAT_REGISTER "w"
#else
#error "the emulator knows x86-64 and arm64"
#endif

// The caller's place in the source, as default arguments, for the messages of the checker.
#ifndef TG_HERE
#define TG_HERE const char *file = __builtin_FILE(), int line = __builtin_LINE()
#endif
