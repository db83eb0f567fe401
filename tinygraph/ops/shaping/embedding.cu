// Embedding: rows of a table, looked up by number.  (Backward adds up by row: scatter.cu.)
//
// operations of embedding_forward: 0
//
// Which thread owns what, grid and block: the grid-stride loop of prelude.cuh, over y.
// Memory: neighbouring threads write neighbours, and read neighbours but where a row ends.

#include "broadcast.cuh"

// indices (...) int64 in, weight (vocabulary, features) T in, y (..., features), n elements, T out.
// An index out of range gives NaN.
// numpy: y = weight[indices]
template <typename T>
__global__ void __launch_bounds__(THREADS)
embedding_forward(const long long* __restrict__ indices, const T* __restrict__ weight,
                  T* __restrict__ y, long long n, long long vocabulary, long long features)
{
    for (long long i = first_element(); i < n; i += element_stride()) {
        long long position = i;
        const long long feature = cut_off(position, features);
        const long long row = indices[position];
        const bool known = row >= 0 && row < vocabulary;
        y[i] = known ? weight[row * features + feature] : T(NAN);
    }
}
