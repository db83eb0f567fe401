// why: the return before the barrier depends on the block only: all threads leave or none
// launch: --kernel masked_reverse --grid 6 --block 32 --arg "active=rng.integers(0,2,6)"
// launch: --arg "x=arange(6*32).reshape(6,32)" --arg "y=inout(zeros((6,32)))"
// equals: y = np.where(active[:, None] == 1, x[:, ::-1], 0)
__global__ void masked_reverse(const int* active, const int* x, int* y) {
    __shared__ int s[32];
    if (!active[blockIdx.x]) return;
    s[threadIdx.x] = x[blockIdx.x * 32 + threadIdx.x];
    __syncthreads();
    y[blockIdx.x * 32 + threadIdx.x] = s[31 - threadIdx.x];
}
