// why: the tail below one warp has a __syncwarp after each load and each store
// launch: --kernel "reduce<float, 256>" --grid 4 --block 256 --arg "src=rng.random(4096)"
// launch: --arg "out=empty(4)" --arg n=4096
// equals: out = src.reshape(4, 4, 256).sum((0, 2))
template <typename T, unsigned BLOCK>
__global__ void reduce(const T* src, T* out, unsigned n)
{
    __shared__ T sdata[BLOCK];
    unsigned tid = threadIdx.x;
    T mine = 0;
    for (unsigned i = blockIdx.x * BLOCK + tid; i < n; i += gridDim.x * BLOCK) mine += src[i];
    sdata[tid] = mine;
    __syncthreads();
#pragma unroll
    for (unsigned s = BLOCK / 2; s >= 32; s >>= 1) {
        if (tid < s) sdata[tid] = mine = mine + sdata[tid + s];
        __syncthreads();
    }
    if (tid < 32) {
        for (unsigned s = 16; s > 0; s >>= 1) {
            T other = sdata[(tid + s) % 32];
            __syncwarp();
            mine += other;
            sdata[tid] = mine;
            __syncwarp();
        }
    }
    if (tid == 0) out[blockIdx.x] = mine;
}
