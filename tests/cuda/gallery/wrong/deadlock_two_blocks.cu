// about: two blocks exchange halves, and each waits for the other's flag before it raises its own
// launch: --kernel swap_halves --grid 2 --block 32 --arg "x=rng.random(64)" --arg "half=zeros(64)"
// launch: --arg "flag=zeros(2)" --arg "y=inout(zeros(64))"
// expect: deadlock
__global__ void swap_halves(const float* x, volatile float* half, volatile int* flag, float* y)
{
    const int t = threadIdx.x, mine = blockIdx.x, other = 1 - mine;
    half[32 * mine + t] = x[32 * mine + t];
    __threadfence();
    __syncthreads();
    if (t == 0) {
        while (flag[other] == 0) { }  // <- here
        flag[mine] = 1;
    }
    __syncthreads();
    y[32 * mine + t] = half[32 * other + t];
}
