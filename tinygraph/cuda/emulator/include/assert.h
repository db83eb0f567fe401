// assert for kernels: a condition that fails stops the launch. Like the C library's header it may
// be included again after NDEBUG changed. C files get the C library's header.
#ifdef __cplusplus
#ifdef TINYGRAPH_PROGRAM
extern "C" void tg_trap(const char *what, const char *file, int line);
#else
#include "cuda_emulator.h"
#endif

#undef assert
#ifdef NDEBUG
#define assert(condition) ((void)0)
#else
#define assert(condition)                                                                        \
    ((condition) ? (void)0 : tg_trap("assertion failed: " #condition, __FILE__, __LINE__))
#endif

#else
#include_next <assert.h>
#endif
