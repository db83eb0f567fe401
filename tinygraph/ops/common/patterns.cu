// Arrays made of the places of their elements: evenly spaced numbers, and bands of matrices.
//
// instances: spaced<T> for T in float, double, long long
// operations of spaced<long long>: 0
// operations of spaced: 2 * n
// operations of band: 0
//
// Which thread owns what, grid, block and memory: the grid-stride loop of prelude.cuh.  Nothing is
// read, and each element is written once.
// Deterministic: an element follows from its place.

#include "element_types.cuh"
#include "prelude.cuh"

// Rounded after the product and after the sum, as numpy does; a compiler would put them together.
__device__ __forceinline__ float line(float i, float first, float step)
{
    return __fadd_rn(first, __fmul_rn(i, step));
}

__device__ __forceinline__ double line(double i, double first, double step)
{
    return __dadd_rn(first, __dmul_rn(i, step));
}

__device__ __forceinline__ long long line(long long i, long long first, long long step)
{
    return static_cast<long long>(modular(first) + modular(i) * modular(step));
}

// out (n) T out; element `place` is `value`, whatever the others would make it.
// numpy: out = first + np.arange(n).astype(T) * step; out[place] = value, where place < n
template <typename T>
__global__ void __launch_bounds__(THREADS)
spaced(T* __restrict__ out, long long n, T first, T step, long long place, T value)
{
    for (long long i = first_element(); i < n; i += element_stride())
        out[i] = i == place ? value : line(static_cast<T>(i), first, step);
}

// out (n / columns, columns) bool out: the diagonals least ... most, of which 0 is the main one and
// 1 the one above.
// numpy: out = np.tri(rows, columns, most, bool) & ~np.tri(rows, columns, least - 1, bool)
__global__ void __launch_bounds__(THREADS)
band(bool* __restrict__ out, long long n, long long columns, long long least, long long most)
{
    for (long long i = first_element(); i < n; i += element_stride()) {
        const long long row = i / columns, diagonal = i - row * columns - row;
        out[i] = least <= diagonal && diagonal <= most;
    }
}
