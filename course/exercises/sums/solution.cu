// Exercise 10: the sum of an array, each block its share.
//
// A block has BLOCK threads, a power of two.  Of x (n) it makes sums (one for each block):
//
//     sums[b] = x[b * BLOCK] + ... + x[b * BLOCK + BLOCK - 1],  as far as x has elements

#ifndef BLOCK
#define BLOCK 128
#endif

// Step 1: what this thread brings along: its element of x, or 0 where there is none.
__device__ float load(const float* x, int n)
{
    // BEGIN SOLUTION 1: which element belongs to thread threadIdx.x of block blockIdx.x?
    const int i = blockIdx.x * BLOCK + threadIdx.x;
    return i < n ? x[i] : 0.0f;
    // END SOLUTION
}

// Step 2: parts[0] becomes the sum of parts[0] to parts[BLOCK - 1].  All threads of the block call
// this together; each has written its own part just before.
__device__ void add_up(float* parts)
{
    // BEGIN SOLUTION 2: halve the number of parts until one is left; who waits for whom?
    const int t = threadIdx.x;
    for (int half = BLOCK / 2; half > 0; half /= 2) {
        __syncthreads();
        if (t < half)
            parts[t] += parts[t + half];
    }
    // END SOLUTION
}

// Step 3: the kernel; its last lines are missing.
__global__ void block_sums(const float* x, float* sums, int n)
{
    __shared__ float parts[BLOCK];
    parts[threadIdx.x] = load(x, n);
    add_up(parts);
    // BEGIN SOLUTION 3: who writes, and where to?
    if (threadIdx.x == 0)
        sums[blockIdx.x] = parts[0];
    // END SOLUTION
}

// Step 4: lane 0 gets the sum of `value` over the 32 lanes of its warp, which all call this.
// No shared memory: __shfl_down_sync(mask, value, k) gives what the lane k further has.
__device__ float warp_sum(float value)
{
    // BEGIN SOLUTION 4: a tree again, of 5 rounds; the mask names all lanes that take part
    for (int k = 16; k > 0; k /= 2)
        value += __shfl_down_sync(0xffffffffu, value, k);
    return value;
    // END SOLUTION
}
