// Seven kernels as one exercise has them: elementwise functions, a transpose and sums, each of
// which is checked for itself.  n elements, rows * cols of a matrix; one thread an element unless
// it is said.

__global__ void relu(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] > 0 ? x[i] : 0;
}

__global__ void relu_backward(const float *x, const float *gy, float *gx, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) gx[i] = x[i] > 0 ? gy[i] : 0;
}

// A grid of any size: each thread goes on by the size of the grid.
__global__ void axpy(float a, const float *x, float *y, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        y[i] = a * x[i] + y[i];
}

__global__ void scale_columns(float *m, const float *s, int rows, int cols) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < rows * cols) m[i] *= s[i % cols];
}

// A block of 32 x 8 threads moves a tile of 32 x 32.
__global__ void transpose(const float *x, float *y, int rows, int cols) {
    __shared__ float tile[32][33];
    int col = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 32 + threadIdx.y;
    for (int k = 0; k < 32; k += 8)
        if (row + k < rows && col < cols) tile[threadIdx.y + k][threadIdx.x] = x[(row + k) * cols + col];
    __syncthreads();
    int out_col = blockIdx.y * 32 + threadIdx.x, out_row = blockIdx.x * 32 + threadIdx.y;
    for (int k = 0; k < 32; k += 8)
        if (out_row + k < cols && out_col < rows)
            y[(out_row + k) * rows + out_col] = tile[threadIdx.x][threadIdx.y + k];
}

// A block a row, by a tree in shared memory.
__global__ void row_sums(const float *x, float *y, int cols) {
    __shared__ float part[128];
    float sum = 0;
    for (int i = threadIdx.x; i < cols; i += blockDim.x) sum += x[blockIdx.x * cols + i];
    part[threadIdx.x] = sum;
    __syncthreads();
    for (int step = blockDim.x / 2; step > 0; step /= 2) {
        if (threadIdx.x < step) part[threadIdx.x] += part[threadIdx.x + step];
        __syncthreads();
    }
    if (threadIdx.x == 0) y[blockIdx.x] = part[0];
}

// A warp a row, by shuffles.
__global__ void row_maxima(const float *x, float *y, int rows, int cols) {
    int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    float most = -3.4e38f;
    for (int i = lane; i < cols; i += 32) most = fmaxf(most, x[row * cols + i]);
    for (int k = 16; k > 0; k /= 2) most = fmaxf(most, __shfl_down_sync(0xffffffffu, most, k));
    if (lane == 0) y[row] = most;
}
