// why: a barrier gathers the block's stores, thread 0 fences them all and draws the ticket
// launch: --kernel column_sums --grid 5 --block 64 --arg "m=rng.random((5,64))"
// launch: --arg "scaled=empty((5,64))" --arg "out=empty(64)"
// launch: --arg "tickets=zeros(1)"
// equals: out = (2 * m).sum(0)
__global__ void column_sums(const float* m, float* scaled, float* out, unsigned* tickets)
{
    __shared__ unsigned mine;
    const int c = threadIdx.x;
    scaled[blockIdx.x * 64 + c] = 2.0f * m[blockIdx.x * 64 + c];
    __syncthreads();
    if (c == 0) {
        __threadfence();
        mine = atomicAdd(tickets, 1u);
        __threadfence();
    }
    __syncthreads();
    if (mine != gridDim.x - 1) return;
    float sum = 0.0f;
    for (int r = 0; r < gridDim.x; ++r) sum += scaled[r * 64 + c];
    out[c] = sum;
}
