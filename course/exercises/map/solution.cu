// Exercise 9: maps.  Every element by itself, one thread for each, or one thread for several.
//
//     relu              y[i]    = x[i] where x[i] > 0, else 0; NaN stays NaN
//     axpy              y[i]    = a * x[i] + y[i]
//     scale_columns     m[r, c] = m[r, c] * s[c]         m has rows * cols elements, row after row
//     relu_backward     gx[i]   = gy[i] where y[i] > 0, else 0

// Step 1: one thread for each element; the grid has at least n threads.
__global__ void relu(const float* x, float* y, int n)
{
    // BEGIN SOLUTION 1: which element is this thread's, and is there one?
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = x[i] < 0.0f ? 0.0f : x[i];
    // END SOLUTION
}

// Step 2: a grid of any size: each thread goes on to a further element until there are none.
__global__ void axpy(float a, const float* x, float* y, int n)
{
    // BEGIN SOLUTION 2: how many threads does the whole grid have?
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        y[i] = a * x[i] + y[i];
    // END SOLUTION
}

// Step 3: one thread for each element of a matrix; neighbours in a warp touch neighbours in memory.
__global__ void scale_columns(float* m, const float* s, int rows, int cols)
{
    // BEGIN SOLUTION 3: a warp moves 4 sectors where its 32 elements lie side by side
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < rows * cols)
        m[i] *= s[i % cols];
    // END SOLUTION
}

// Step 4: the gradient goes where y is above 0, and nowhere else.
__global__ void relu_backward(const float* y, const float* gy, float* gx, int n)
{
    // BEGIN SOLUTION 4: every element of gx is written, also where it is 0
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        gx[i] = y[i] > 0.0f ? gy[i] : 0.0f;
    // END SOLUTION
}
