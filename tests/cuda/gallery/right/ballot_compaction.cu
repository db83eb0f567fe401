// why: one atomic a warp takes the room, the ballot tells each lane its place in it
// launch: --kernel compact --grid 4 --block 64 --arg "x=rng.standard_normal(256)"
// launch: --arg "kept=inout(zeros(256))" --arg "count=zeros(1)"
// equals: np.sort(kept[:count[0]]) = np.sort(x[x > 0])
__global__ void compact(const float* x, float* kept, int* count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int lane = threadIdx.x % 32;
    float v = x[i];
    unsigned yes = __ballot_sync(0xffffffffu, v > 0.0f);
    int base = 0;
    if (lane == 0) base = atomicAdd(count, __popc(yes));
    base = __shfl_sync(0xffffffffu, base, 0);
    if (v > 0.0f) kept[base + __popc(yes & ((1u << lane) - 1u))] = v;
}
