// why: the return before the barrier depends on the block only: all threads leave or none
// launch: --kernel masked_reverse --grid 6 --block 32 --arg active=int32[6]:randint(0,2)
// launch: --arg x=int32[6,32]:arange --arg y=int32[6,32]:zeros:inout
// equals: y = np.where(active[:, None] == 1, x[:, ::-1], 0)
__global__ void masked_reverse(const int* active, const int* x, int* y) {
    __shared__ int s[32];
    if (!active[blockIdx.x]) return;
    s[threadIdx.x] = x[blockIdx.x * 32 + threadIdx.x];
    __syncthreads();
    y[blockIdx.x * 32 + threadIdx.x] = s[31 - threadIdx.x];
}
