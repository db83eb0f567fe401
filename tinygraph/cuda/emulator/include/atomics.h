// CUDA's atomic functions and memory fences.
//
// Every function reads the value at an address, replaces it, and gives back the old value, with no
// other thread in between: blocks run on several OS threads, so these are the processor's own
// atomic operations. The overloads are those of the CUDA C++ Programming Guide, "Atomic Functions".
//
// On a GPU atomics order nothing else (they are relaxed); here they are sequentially consistent,
// and it is the checker that tells when a kernel needs a fence. The scopes _block and _system are
// cheaper or wider there and the same here.
#pragma once

#include "tg_attributes.h"

// Before each atomic: check builds report it to the checker.
TG_UNINSTRUMENTED void tg_before_atomic(const void* address, unsigned size, const char* file,
                                        int line)
{
#ifdef TINYGRAPH_CHECK
    tg_atomic_access(address, size, file, line);
#else
    (void)address, (void)size, (void)file, (void)line;
    tg_atomic_pause();
#endif
}

// Before a value is stored by an atomic: it must be defined.
template <typename T> TG_INLINE void tg_stored(const T& value, const char* file, int line)
{
#ifdef TINYGRAPH_FOLLOW
    tg_use(&value, sizeof(T), file, line);
#else
    (void)value, (void)file, (void)line;
#endif
}

// Locks are looked at by the build that checks, not by the one that follows undefined values: these
// must decide nothing here.
#if defined TINYGRAPH_CHECK && !defined TINYGRAPH_FOLLOW
#define TG_LOCKS
#endif

template <typename T> TG_UNINSTRUMENTED bool tg_is_zero(const T& value)
{
#ifdef TG_LOCKS
    return value == T();
#else
    return (void)value, false;
#endif
}

// Before a value is put in the place of zero, as who takes a lock does: whether another has it.
TG_UNINSTRUMENTED bool tg_is_taken(const void* address, bool takes, const char* file, int line)
{
#ifdef TG_LOCKS
    return takes && tg_contended(address, file, line);
#else
    return (void)address, (void)takes, (void)file, (void)line, false;
#endif
}

// After a value was put in the place of another: it may be a lock that is taken, or given back.
TG_UNINSTRUMENTED void tg_after_exchange(const void* address, bool was_zero, bool is_zero,
                                         const char* file, int line)
{
#ifdef TG_LOCKS
    tg_exchanged(address, was_zero, is_zero, file, line);
#else
    (void)address, (void)was_zero, (void)is_zero, (void)file, (void)line;
#endif
}

// ---- What an operation makes of the old value. -------------------------------------------------

#define TG_OPERATION(Name, expression)                                                           \
    struct Name {                                                                                \
        template <typename T> static TG_UNINSTRUMENTED T apply(T old, T value)                   \
        {                                                                                        \
            return expression;                                                                   \
        }                                                                                        \
    };

TG_OPERATION(tg_plus, old + value)
TG_OPERATION(tg_exchange, ((void)old, value))
TG_OPERATION(tg_minimum, value < old ? value : old)
TG_OPERATION(tg_maximum, old < value ? value : old)
TG_OPERATION(tg_bit_and, old & value)
TG_OPERATION(tg_bit_or, old | value)
TG_OPERATION(tg_bit_xor, old ^ value)
TG_OPERATION(tg_wrapping_increment, old >= value ? 0 : old + 1)
TG_OPERATION(tg_wrapping_decrement, old == 0 || old > value ? value : old - 1)
#undef TG_OPERATION

// Whether an operation puts the value itself there: a lock is taken in this way.
template <typename Operation> struct tg_sets {
    static const bool value = false;
};
template <> struct tg_sets<tg_exchange> {
    static const bool value = true;
};

// The one loop under all of them but compare-and-swap: compute the new value, and store it only if
// nobody changed the old one meanwhile; else start again from what is there now.
template <typename Operation, typename T>
TG_UNINSTRUMENTED T tg_atomic(T* address, T value, const char* file, int line)
{
    tg_before_atomic(address, sizeof(T), file, line);
    tg_stored(value, file, line);
    if (tg_sets<Operation>::value && tg_is_taken(address, !tg_is_zero(value), file, line))
        return value;
    T old, desired;
    __atomic_load(address, &old, __ATOMIC_RELAXED);
    do {
        desired = Operation::apply(old, value);
    } while (!__atomic_compare_exchange(address, &old, &desired, false, __ATOMIC_SEQ_CST,
                                        __ATOMIC_RELAXED));
    if (tg_sets<Operation>::value || tg_is_zero(desired))
        tg_after_exchange(address, tg_is_zero(old), tg_is_zero(desired), file, line);
    return old;
}

template <typename T>
TG_UNINSTRUMENTED T tg_compare_and_swap(T* address, T expected, T desired, const char* file,
                                        int line)
{
#ifdef TINYGRAPH_CHECK
    tg_before_swap(address, &expected, sizeof(T));
#endif
    tg_before_atomic(address, sizeof(T), file, line);
    tg_stored(expected, file, line);
    tg_stored(desired, file, line);
    const bool takes = tg_is_zero(expected) && !tg_is_zero(desired);
    if (tg_is_taken(address, takes, file, line)) return desired;
    if (__atomic_compare_exchange(address, &expected, &desired, false, __ATOMIC_SEQ_CST,
                                  __ATOMIC_SEQ_CST))
        tg_after_exchange(address, tg_is_zero(expected), tg_is_zero(desired), file, line);
    return expected;  // what was there, equal or not
}

// ---- The functions, each in three scopes. ------------------------------------------------------

#define TG_ATOMIC_SCOPE(function, Operation, T)                                                  \
    TG_INLINE T function(T* address, T value, TG_HERE)                                           \
    {                                                                                            \
        return tg_atomic<Operation, T>(address, value, file, line);                              \
    }
#define TG_ATOMIC(function, Operation, T)                                                        \
    TG_ATOMIC_SCOPE(function, Operation, T)                                                      \
    TG_ATOMIC_SCOPE(function##_block, Operation, T)                                              \
    TG_ATOMIC_SCOPE(function##_system, Operation, T)

TG_ATOMIC(atomicAdd, tg_plus, unsigned int)
TG_ATOMIC(atomicAdd, tg_plus, unsigned long long)
TG_ATOMIC(atomicAdd, tg_plus, float)
TG_ATOMIC(atomicAdd, tg_plus, double)

// Signed overflow is undefined in C++ and wraps on a GPU: add the same bits as unsigned.
#define TG_ATOMIC_SUM_SCOPE(function, T, sign)                                                   \
    TG_INLINE T function(T* address, T value, TG_HERE)                                           \
    {                                                                                            \
        return (T)tg_atomic<tg_plus, unsigned int>((unsigned int*)address,                       \
                                                   sign(unsigned int) value, file, line);        \
    }
#define TG_ATOMIC_SUM(function, T, sign)                                                         \
    TG_ATOMIC_SUM_SCOPE(function, T, sign)                                                       \
    TG_ATOMIC_SUM_SCOPE(function##_block, T, sign)                                               \
    TG_ATOMIC_SUM_SCOPE(function##_system, T, sign)

TG_ATOMIC_SUM(atomicAdd, int, +)
TG_ATOMIC_SUM(atomicSub, int, -)
TG_ATOMIC_SUM(atomicSub, unsigned int, -)

TG_ATOMIC(atomicExch, tg_exchange, int)
TG_ATOMIC(atomicExch, tg_exchange, unsigned int)
TG_ATOMIC(atomicExch, tg_exchange, unsigned long long)
TG_ATOMIC(atomicExch, tg_exchange, float)

#define TG_ATOMIC_INTEGERS(function, Operation)                                                  \
    TG_ATOMIC(function, Operation, int)                                                          \
    TG_ATOMIC(function, Operation, unsigned int)                                                 \
    TG_ATOMIC(function, Operation, long long)                                                    \
    TG_ATOMIC(function, Operation, unsigned long long)

TG_ATOMIC_INTEGERS(atomicMin, tg_minimum)
TG_ATOMIC_INTEGERS(atomicMax, tg_maximum)
TG_ATOMIC_INTEGERS(atomicAnd, tg_bit_and)
TG_ATOMIC_INTEGERS(atomicOr, tg_bit_or)
TG_ATOMIC_INTEGERS(atomicXor, tg_bit_xor)

// Counters that wrap: Inc counts 0 .. value and starts again, Dec counts down from value.
TG_ATOMIC(atomicInc, tg_wrapping_increment, unsigned int)
TG_ATOMIC(atomicDec, tg_wrapping_decrement, unsigned int)

#define TG_CAS_SCOPE(function, T)                                                                \
    TG_INLINE T function(T* address, T expected, T desired, TG_HERE)                             \
    {                                                                                            \
        return tg_compare_and_swap<T>(address, expected, desired, file, line);                   \
    }
#define TG_CAS(T)                                                                                \
    TG_CAS_SCOPE(atomicCAS, T)                                                                   \
    TG_CAS_SCOPE(atomicCAS_block, T)                                                             \
    TG_CAS_SCOPE(atomicCAS_system, T)

TG_CAS(int)
TG_CAS(unsigned int)
TG_CAS(unsigned long long)
TG_CAS(unsigned short)

#undef TG_ATOMIC
#undef TG_ATOMIC_SCOPE
#undef TG_ATOMIC_SUM
#undef TG_ATOMIC_SUM_SCOPE
#undef TG_ATOMIC_INTEGERS
#undef TG_CAS
#undef TG_CAS_SCOPE

// ---- Fences: what this thread wrote before is seen before what it writes after. ----------------

TG_INLINE void __threadfence_block() { tg_fence(0); }
TG_INLINE void __threadfence() { tg_fence(1); }
TG_INLINE void __threadfence_system() { tg_fence(2); }
