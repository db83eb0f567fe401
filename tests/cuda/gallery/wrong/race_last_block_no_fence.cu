// about: the last-block reduction without the fence between the partial sum and the ticket
// launch: --kernel grid_sum --grid 6 --block 128 --arg "x=rng.random(768)"
// launch: --arg "partial=empty(6)" --arg "out=empty(1)"
// expect: race
__device__ unsigned int ticket = 0;

__global__ void grid_sum(const float* x, float* partial, float* out)
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
        partial[blockIdx.x] = s[0];  // <- here
        is_last = atomicInc(&ticket, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (is_last && t == 0) {
        float sum = 0.f;
        for (unsigned b = 0; b < gridDim.x; ++b) sum += partial[b];  // <- here
        *out = sum;
    }
}
