// Exercise 11: the product of two matrices, C = A @ B, with fewer and fewer bytes fetched.
//
//     C[r, c] = A[r, 0] * B[0, c] + A[r, 1] * B[1, c] + ... + A[r, K - 1] * B[K - 1, c]
//
// A has M x K elements, B has K x N, C has M x N, all of them row after row.  Blocks have
// TILE x TILE threads; threadIdx.x counts along a row.  gridDim.y blocks cover the rows of C,
// gridDim.x its columns.

#ifndef TILE
#define TILE 16
#endif

// Step 1: a thread makes one element of C.
__global__ void naive(const float* A, const float* B, float* C, int M, int N, int K)
{
    // BEGIN SOLUTION 1: which element is this thread's, is there one, and what is summed?
    const int row = blockIdx.y * TILE + threadIdx.y;
    const int column = blockIdx.x * TILE + threadIdx.x;
    if (row >= M || column >= N)
        return;
    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += A[row * K + k] * B[k * N + column];
    C[row * N + column] = sum;
    // END SOLUTION
}

// Step 2: tile becomes the part of a matrix of rows x columns elements that begins at row0 and
// column0.  The threads of the block call this together, each for one element; 0 beyond the edges.
__device__ void load_tile(const float* matrix, float tile[TILE][TILE], int rows, int columns,
                          int row0, int column0)
{
    // BEGIN SOLUTION 2: neighbours in a warp fetch neighbours in a row
    const int x = threadIdx.x, y = threadIdx.y;
    const int row = row0 + y, column = column0 + x;
    tile[y][x] = row < rows && column < columns ? matrix[row * columns + column] : 0.0f;
    // END SOLUTION
}

// Step 3: the same product.  The block goes along K tile by tile and fetches each number once.
__global__ void tiled(const float* A, const float* B, float* C, int M, int N, int K)
{
    __shared__ float a[TILE][TILE], b[TILE][TILE];
    // BEGIN SOLUTION 3: load two tiles, multiply them, next; who waits for whom?
    const int x = threadIdx.x, y = threadIdx.y;
    const int row0 = blockIdx.y * TILE, column0 = blockIdx.x * TILE;
    float sum = 0.0f;
    for (int k0 = 0; k0 < K; k0 += TILE) {
        load_tile(A, a, M, K, row0, k0);
        load_tile(B, b, K, N, k0, column0);
        __syncthreads();
        for (int k = 0; k < TILE; ++k)
            sum += a[y][k] * b[k][x];
        __syncthreads();
    }
    if (row0 + y < M && column0 + x < N)
        C[(row0 + y) * N + column0 + x] = sum;
    // END SOLUTION
}

// Steps 4 and 5: a block makes 4*TILE x 4*TILE elements of C, a thread 16 of them, which lie TILE
// apart: sum[i][j] belongs to row0 + i*TILE + y and column0 + j*TILE + x.  These two are given:

// Four tiles of A, one below the other, and four of B, side by side.
__device__ void load_tiles(const float* A, const float* B, float a[4][TILE][TILE],
                           float b[4][TILE][TILE], int M, int N, int K, int row0, int column0,
                           int k0)
{
    for (int i = 0; i < 4; ++i) {
        load_tile(A, a[i], M, K, row0 + i * TILE, k0);
        load_tile(B, b[i], K, N, k0, column0 + i * TILE);
    }
}

// The 16 sums of this thread, as far as C has these elements.
__device__ void write_sums(float sum[4][4], float* C, int M, int N, int row0, int column0)
{
    for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j) {
            const int row = row0 + i * TILE + threadIdx.y;
            const int column = column0 + j * TILE + threadIdx.x;
            if (row < M && column < N)
                C[row * N + column] = sum[i][j];
        }
}

// Step 4: for each k a thread reads 4 numbers of a and 4 of b, and multiplies each by each.
__global__ void register_tile(const float* A, const float* B, float* C, int M, int N, int K)
{
    __shared__ float a[4][TILE][TILE], b[4][TILE][TILE];
    // BEGIN SOLUTION 4: as in step 3, with 16 sums; 8 reads are enough for 16 multiply-adds
    const int x = threadIdx.x, y = threadIdx.y;
    const int row0 = blockIdx.y * 4 * TILE, column0 = blockIdx.x * 4 * TILE;
    float sum[4][4] = {};
    for (int k0 = 0; k0 < K; k0 += TILE) {
        load_tiles(A, B, a, b, M, N, K, row0, column0, k0);
        __syncthreads();
        for (int k = 0; k < TILE; ++k) {
            const float right[4] = {b[0][k][x], b[1][k][x], b[2][k][x], b[3][k][x]};
            for (int i = 0; i < 4; ++i) {
                const float left = a[i][y][k];
                for (int j = 0; j < 4; ++j)
                    sum[i][j] += left * right[j];
            }
        }
        __syncthreads();
    }
    write_sums(sum, C, M, N, row0, column0);
    // END SOLUTION
}

// Step 5: two buffers: while one is multiplied, the next tiles come into the other.
__global__ void double_buffered(const float* A, const float* B, float* C, int M, int N, int K)
{
    __shared__ float a[2][4][TILE][TILE], b[2][4][TILE][TILE];
    // BEGIN SOLUTION 5: one barrier for each tile is enough; where does it stand?
    const int x = threadIdx.x, y = threadIdx.y;
    const int row0 = blockIdx.y * 4 * TILE, column0 = blockIdx.x * 4 * TILE;
    float sum[4][4] = {};
    load_tiles(A, B, a[0], b[0], M, N, K, row0, column0, 0);
    for (int k0 = 0, now = 0; k0 < K; k0 += TILE, now = 1 - now) {
        __syncthreads();
        const int next = k0 + TILE;
        if (next < K)
            load_tiles(A, B, a[1 - now], b[1 - now], M, N, K, row0, column0, next);
        for (int k = 0; k < TILE; ++k) {
            const float right[4] = {b[now][0][k][x], b[now][1][k][x], b[now][2][k][x],
                                    b[now][3][k][x]};
            for (int i = 0; i < 4; ++i) {
                const float left = a[now][i][y][k];
                for (int j = 0; j < 4; ++j)
                    sum[i][j] += left * right[j];
            }
        }
    }
    write_sums(sum, C, M, N, row0, column0);
    // END SOLUTION
}
