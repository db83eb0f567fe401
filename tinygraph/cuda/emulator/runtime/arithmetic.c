/* Integer arithmetic that C++ leaves undefined: signed overflow, a division by zero, a shift by the
 * width of the type or more, an index beyond a local array.
 *
 * A checked kernel is compiled with -fsanitize=signed-integer-overflow and its like, which makes the
 * compiler call __ubsan_handle_add_overflow and its like where such a thing has happened.  As in
 * hooks.c, we define these functions ourselves.  Their arguments are those of compiler-rt's
 * lib/ubsan/ubsan_handlers.h, which g++ and clang share.
 */
#include "check.h"

#include <stdio.h>

typedef struct { const char *file; uint32_t line, column; } Location;
typedef struct {
    uint16_t kind, info; /* of an integer: 0; 1 if it is signed, plus twice log2 of its bits */
    char name[];         /* as in the source, in quotes */
} Type;
typedef struct { Location at; const Type *type; } Arithmetic;
typedef struct { Location at; const Type *left, *right; } Shift;
typedef struct { Location at; const Type *array, *index; } Index;

typedef __int128 Wide;

static unsigned bits_of(const Type *type) { return 1u << (type->info >> 1); }

static bool negative(const Type *type, uintptr_t value) {
    return type->kind == 0 && type->info & 1 && value >> (bits_of(type) - 1) & 1;
}

/* The number that a value handed over stands for: all bits, or a pointer to more than 64. */
static Wide number(const Type *type, uintptr_t value) {
    if (bits_of(type) > 64) return 0;
    if (bits_of(type) == 64) return negative(type, value) ? (Wide)(int64_t)value : (Wide)value;
    const uint64_t mask = (1ull << bits_of(type)) - 1;
    return negative(type, value) ? (Wide)(int64_t)(value | ~mask) : (Wide)(value & mask);
}

static const char *digits(Wide n, char text[48]) {
    char *at = text + 47;
    unsigned __int128 rest = n < 0 ? -(unsigned __int128)n : (unsigned __int128)n;
    *at = 0;
    do *--at = (char)('0' + (int)(rest % 10));
    while (rest /= 10);
    if (n < 0) *--at = '-';
    return at;
}

static bool watched(void) { return tg_observer && tg_worker && tg_worker->in_kernel; }

static Place place_of(const Location *at) { return (Place){at->file, (int32_t)at->line, 0}; }

static void overflow(const Arithmetic *what, uintptr_t left, uintptr_t right, char sign) {
    if (!watched()) return;
    site_of(place_of(&what->at)); /* for a loop that never ends and touches no memory */
    const Wide a = number(what->type, left), b = number(what->type, right);
    const Wide result = sign == '+' ? a + b : sign == '-' ? a - b : a * b;
    char texts[3][48];
    tg_observer->found(INTEGER_OVERFLOW, place_of(&what->at), (Place){0}, NULL,
                       "%s %c %s is %s, which %s does not hold", digits(a, texts[0]), sign,
                       digits(b, texts[1]), digits(result, texts[2]), what->type->name);
}

void __ubsan_handle_add_overflow(const Arithmetic *what, uintptr_t left, uintptr_t right) {
    overflow(what, left, right, '+');
}
void __ubsan_handle_sub_overflow(const Arithmetic *what, uintptr_t left, uintptr_t right) {
    overflow(what, left, right, '-');
}
void __ubsan_handle_mul_overflow(const Arithmetic *what, uintptr_t left, uintptr_t right) {
    overflow(what, left, right, '*');
}
void __ubsan_handle_negate_overflow(const Arithmetic *what, uintptr_t value) {
    overflow(what, 0, value, '-');
}

void __ubsan_handle_divrem_overflow(const Arithmetic *what, uintptr_t left, uintptr_t right) {
    if (!watched()) return;
    char texts[2][48];
    const Wide a = number(what->type, left), b = number(what->type, right);
    const char *above = digits(a, texts[0]), *below = digits(b, texts[1]);
    if (b == 0)
        tg_observer->found(ARITHMETIC, place_of(&what->at), (Place){0}, NULL,
                           "%s is divided by zero: a GPU does not stop there, it goes on with an "
                           "undefined number", above);
    else
        tg_observer->found(INTEGER_OVERFLOW, place_of(&what->at), (Place){0}, NULL,
                           "the quotient of %s and %s does not fit in %s", above, below,
                           what->type->name);
    check_stop(); /* the processor would */
}

void __ubsan_handle_shift_out_of_bounds(const Shift *what, uintptr_t left, uintptr_t right) {
    (void)left;
    if (!watched()) return;
    char text[48];
    tg_observer->found(ARITHMETIC, place_of(&what->at), (Place){0}, NULL,
                       "a shift of %s, which has %u bits, by %s: undefined", what->left->name,
                       bits_of(what->left), digits(number(what->right, right), text));
}

void __ubsan_handle_out_of_bounds(const Index *what, uintptr_t index) {
    if (!watched()) return;
    char text[48], words[160];
    snprintf(words, sizeof words, "index %s into an array of type %s",
             digits(number(what->index, index), text), what->array->name);
    check_beyond(place_of(&what->at), what->array, index, words);
}
