// why: each thread has a generator of its own; whole counts are added by one atomic a warp
// launch: --kernel pi --grid 4 --block 64 --arg "hits=zeros(1)" --arg draws=100
// equals: abs(4 * hits[0] / 25600 - np.pi) < 0.1 = np.bool_(True)
typedef unsigned long long u64;

__device__ float draw(u64* state) {
    *state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (float)(unsigned)(*state >> 40) * (1.0f / 16777216.0f);
}

__global__ void pi(u64* hits, int draws) {
    u64 state = (blockIdx.x * blockDim.x + threadIdx.x + 1) * 0x9E3779B97F4A7C15ULL;
    int inside = 0;
    for (int k = 0; k < draws; ++k) {
        float x = draw(&state), y = draw(&state);
        inside += x * x + y * y < 1.0f;
    }
    for (int o = 16; o; o >>= 1) inside += __shfl_down_sync(0xffffffffu, inside, o);
    if (threadIdx.x % 32 == 0) atomicAdd(hits, (u64)inside);
}
