// Tensor cores: one warp multiplies two small matrices with one instruction. For sm_80 and later.
//
// Each function is one PTX instruction, which all 32 lanes of a warp execute together. A matrix is
// a fragment: every lane holds a few of its elements in registers. In the drawings
//
//     g = lane / 4  ("group", 0 .. 7)        t = lane % 4  ("thread in group", 0 .. 3)
//
// The emulator's bodies exchange the fragments between the lanes and do the sums in float32, in
// the order of k. A GPU may add in another order and round differently in between (PTX ISA, "mma":
// at least single precision), so compare with a tolerance; integers of moderate size are exact.
//
// Source of all layouts: PTX ISA, "Warp Level Matrix Instructions", "Matrix Fragments for
// mma.m16n8k8" / "for mma.m16n8k16 with floating point type", and "ldmatrix".
#pragma once

// ---- C and D, the 16 x 8 accumulators of both products, float32. ------------------------------
//
//                 columns 2t, 2t+1
//     row g         c[0] c[1]
//     row g + 8     c[2] c[3]
//
// ---- mma_m16n8k8_tf32: D (16 x 8) = A (16 x 8) B (8 x 8) + C. ----------------------------------
//
//     A, row by row        column t   column t + 4        B            column g
//     row g                  a[0]        a[2]             row t          b[0]
//     row g + 8              a[1]        a[3]             row t + 4      b[1]
//
// Elements are tf32: float32 of which the hardware reads 10 bits of mantissa. Round with
// float_to_tf32 first; the lowest 13 bits of an unrounded float are ignored.
//
// ---- mma_m16n8k16_bf16: D (16 x 8) = A (16 x 16) B (16 x 8) + C. -------------------------------
//
//     A, row by row    columns 2t, 2t+1   columns 2t+8, 2t+9     B                  column g
//     row g                 a[0]                a[2]             rows 2t, 2t+1        b[0]
//     row g + 8             a[1]                a[3]             rows 2t+8, 2t+9      b[1]
//
// Each register holds two bf16; the one of the lower column (of A) or row (of B) is in the lower
// half.
//
// ---- ldmatrix_x4: four 8 x 8 matrices of 16-bit elements from shared memory. -------------------
//
// Lane l gives the address of row l % 8 of matrix l / 8: eight elements, 16 bytes, aligned to 16.
// Then d[i] of each lane holds elements (g, 2t) and (g, 2t+1) of matrix i, the first in the lower
// half. With the four quarters of a bf16 A in the order (rows 0-7, columns 0-7), (8-15, 0-7),
// (0-7, 8-15), (8-15, 8-15) that is A's fragment. ldmatrix_x4_trans gives elements (2t, g) and
// (2t+1, g): B's fragment from a B that is stored row by row.

#ifdef TINYGRAPH_EMULATOR

// What a lane brings to a product.
struct tg_mma_fragments {
    unsigned a[4], b[2];
};

// The tf32 at (row, k) of A or (k, column) of B, as float.
inline float tg_tf32(unsigned bits) { return __uint_as_float(bits & 0xffffe000u); }

// One half of a pair of bf16, as float: a bf16 is the upper half of a float32.
inline float tg_bf16(unsigned pair, int upper)
{
    return __uint_as_float(upper ? pair & 0xffff0000u : pair << 16);
}

// A[row][k] and B[k][column] for the two shapes, read off the drawings above.
struct tg_m16n8k8_tf32 {
    static const int K = 8;
    static float a(const tg_mma_fragments* lanes, int row, int k)
    {
        return tg_tf32(lanes[row % 8 * 4 + k % 4].a[row / 8 + k / 4 * 2]);
    }
    static float b(const tg_mma_fragments* lanes, int k, int column)
    {
        return tg_tf32(lanes[column * 4 + k % 4].b[k / 4]);
    }
};

struct tg_m16n8k16_bf16 {
    static const int K = 16;
    static float a(const tg_mma_fragments* lanes, int row, int k)
    {
        return tg_bf16(lanes[row % 8 * 4 + k % 8 / 2].a[row / 8 + k / 8 * 2], k % 2);
    }
    static float b(const tg_mma_fragments* lanes, int k, int column)
    {
        return tg_bf16(lanes[column * 4 + k % 8 / 2].b[k / 8], k % 2);
    }
};

template <typename Shape>
inline void tg_mma(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2],
                   const float (&c)[4], const char* file, int line)
{
    tg_mma_fragments mine = {{a[0], a[1], a[2], a[3]}, {b[0], b[1]}}, lanes[32];
    tg_warp_exchange(0xffffffffu, &mine, sizeof(mine), lanes, file, line);
    int g = tg_lane() / 4, t = tg_lane() % 4;
    for (int i = 0; i < 4; i++) {
        int row = g + i / 2 * 8, column = 2 * t + i % 2;
        float sum = c[i];
        for (int k = 0; k < Shape::K; k++) {
            sum += Shape::a(lanes, row, k) * Shape::b(lanes, k, column);
        }
        d[i] = sum;
    }
}

inline void mma_m16n8k8_tf32(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2],
                             const float (&c)[4], TG_HERE)
{
    tg_mma<tg_m16n8k8_tf32>(d, a, b, c, file, line);
}

inline void mma_m16n8k16_bf16(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2],
                              const float (&c)[4], TG_HERE)
{
    tg_mma<tg_m16n8k16_bf16>(d, a, b, c, file, line);
}

// Eight elements of 16 bits; all lanes' rows, four matrices one after the other.
struct tg_matrix_row {
    unsigned short element[8];
};

// The checker sees one access of 16 bytes, at the line that calls ldmatrix.
TG_UNINSTRUMENTED void tg_read_rows(tg_matrix_row (&rows)[32], const void* row, const char* file,
                                    int line)
{
    tg_access(row, sizeof(tg_matrix_row), 0, file, line);
    tg_matrix_row mine;
    __builtin_memcpy(&mine, row, sizeof(mine));
    tg_warp_exchange(0xffffffffu, &mine, sizeof(mine), rows, file, line);
}

inline void ldmatrix_x4(unsigned (&d)[4], const void* row, TG_HERE)
{
    tg_matrix_row rows[32];
    tg_read_rows(rows, row, file, line);
    int g = tg_lane() / 4, t = tg_lane() % 4;
    for (int i = 0; i < 4; i++) {
        const tg_matrix_row& mine = rows[8 * i + g];
        d[i] = mine.element[2 * t] | (unsigned)mine.element[2 * t + 1] << 16;
    }
}

inline void ldmatrix_x4_trans(unsigned (&d)[4], const void* row, TG_HERE)
{
    tg_matrix_row rows[32];
    tg_read_rows(rows, row, file, line);
    int g = tg_lane() / 4, t = tg_lane() % 4;
    for (int i = 0; i < 4; i++) {
        const tg_matrix_row* matrix = rows + 8 * i;
        d[i] = matrix[2 * t].element[g] | (unsigned)matrix[2 * t + 1].element[g] << 16;
    }
}

// float32 to tf32: to nearest, halves away from zero. Infinity and NaN stay.
inline unsigned float_to_tf32(float x)
{
    unsigned bits = __float_as_uint(x);
    if ((bits & 0x7f800000u) == 0x7f800000u) return bits;
    return (bits + 0x1000u) & 0xffffe000u;
}

// For mma alone, see below.
inline unsigned float_to_tf32_bits(float x)
{
    return __float_as_uint(x) & 0x7f800000u ? float_to_tf32(x) : __float_as_uint(x) & 0xffffe000u;
}

inline unsigned tg_float_to_bf16(float x)
{
    unsigned bits = __float_as_uint(x);
    if (x != x) return 0x7fffu;  // the one NaN that the instruction gives
    return (bits + 0x7fffu + (bits >> 16 & 1)) >> 16;
}

// Two float32 to a pair of bf16, to nearest even.
inline unsigned floats_to_bf16x2(float lower, float upper)
{
    return tg_float_to_bf16(upper) << 16 | tg_float_to_bf16(lower);
}

#elif __CUDA_ARCH__ >= 800

__device__ __forceinline__ void mma_m16n8k8_tf32(float (&d)[4], const unsigned (&a)[4],
                                                 const unsigned (&b)[2], const float (&c)[4])
{
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};"
        : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(c[0]), "f"(c[1]),
          "f"(c[2]), "f"(c[3]));
}

__device__ __forceinline__ void mma_m16n8k16_bf16(float (&d)[4], const unsigned (&a)[4],
                                                  const unsigned (&b)[2], const float (&c)[4])
{
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};"
        : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(c[0]), "f"(c[1]),
          "f"(c[2]), "f"(c[3]));
}

__device__ __forceinline__ void ldmatrix_x4(unsigned (&d)[4], const void* row)
{
    unsigned address = (unsigned)__cvta_generic_to_shared(row);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
                 : "r"(address)
                 : "memory");
}

__device__ __forceinline__ void ldmatrix_x4_trans(unsigned (&d)[4], const void* row)
{
    unsigned address = (unsigned)__cvta_generic_to_shared(row);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
                 : "r"(address)
                 : "memory");
}

__device__ __forceinline__ unsigned float_to_tf32(float x)
{
    unsigned result;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(result) : "f"(x));
    return result;
}

// The same where only mma reads it, in two instructions in place of four: the sum of x and half a unit
// of its tf32.  The 13 bits that mma ignores stay; a subnormal number has them cut off.
__device__ __forceinline__ unsigned float_to_tf32_bits(float x)
{
    const float power = __uint_as_float(__float_as_uint(x) & 0xff800000u);  // sign and exponent
    return __float_as_uint(fmaf(power, 1.0f / 2048, x));
}

__device__ __forceinline__ unsigned floats_to_bf16x2(float lower, float upper)
{
    unsigned result;  // the first source goes to the upper half
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(result) : "f"(upper), "f"(lower));
    return result;
}

#else  // before sm_80: a kernel that uses one of them gets a message, one that does not compiles

template <typename T> struct tg_needs_sm_80 {
    static const bool holds = false;
};

#define TG_NEEDS_SM_80(function)                                                                 \
    template <typename T, typename... Rest> __device__ void function(T&&, Rest&&...)             \
    {                                                                                            \
        static_assert(tg_needs_sm_80<T>::holds,                                                  \
                      #function " needs tensor cores of sm_80 or later: compile for sm_80, or "  \
                                "guard the call with #if __CUDA_ARCH__ >= 800");                 \
    }

TG_NEEDS_SM_80(mma_m16n8k8_tf32)
TG_NEEDS_SM_80(mma_m16n8k16_bf16)
TG_NEEDS_SM_80(ldmatrix_x4)
TG_NEEDS_SM_80(ldmatrix_x4_trans)
#undef TG_NEEDS_SM_80

template <typename T> __device__ unsigned float_to_tf32(T)
{
    static_assert(tg_needs_sm_80<T>::holds, "float_to_tf32 needs sm_80 or later");
    return 0;
}

template <typename T> __device__ unsigned float_to_tf32_bits(T)
{
    static_assert(tg_needs_sm_80<T>::holds, "float_to_tf32_bits needs sm_80 or later");
    return 0;
}

template <typename T> __device__ unsigned floats_to_bf16x2(T, T)
{
    static_assert(tg_needs_sm_80<T>::holds, "floats_to_bf16x2 needs sm_80 or later");
    return 0;
}

#endif
