// One-hot vectors of labels.
//
// operations of one_hot: 0
//
// A thread owns elements of y, grid and block: the grid-stride loop of prelude.cuh.
// Memory: neighbouring threads write neighbouring elements and read the same label: coalesced.
// Deterministic: no two threads write one element.  A label out of range makes a row of zeros.

#include "prelude.cuh"

// labels (n / classes) in, y (n) out.
// numpy: y = labels[..., None] == np.arange(classes)
__global__ void __launch_bounds__(THREADS)
one_hot(const long long* __restrict__ labels, long long* __restrict__ y, long long n, long long classes)
{
    for (long long i = first_element(); i < n; i += element_stride()) {
        const long long row = i / classes;
        y[i] = labels[row] == i - row * classes;
    }
}
