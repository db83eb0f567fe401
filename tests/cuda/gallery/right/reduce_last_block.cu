// why: partial sums are fenced before the ticket; the block with the last ticket may read them all
// launch: --kernel grid_sum --grid 6 --block 128 --arg "x=rng.random(768)"
// launch: --arg "partial=empty(6)" --arg "out=empty(1)"
// equals: out = x.sum(keepdims=True)
__device__ unsigned int ticket = 0;

__global__ void grid_sum(const float* x, volatile float* partial, float* out)
{
    __shared__ float s[128];
    __shared__ bool is_last;
    unsigned t = threadIdx.x;
    s[t] = x[blockIdx.x * 128 + t];
    __syncthreads();
    for (unsigned h = 64; h; h >>= 1) {
        if (t < h) s[t] += s[t + h];
        __syncthreads();
    }
    if (t == 0) {
        partial[blockIdx.x] = s[0];
        __threadfence();
        is_last = atomicInc(&ticket, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (is_last && t == 0) {
        float sum = 0.f;
        for (unsigned b = 0; b < gridDim.x; ++b) sum += partial[b];
        *out = sum;
    }
}
