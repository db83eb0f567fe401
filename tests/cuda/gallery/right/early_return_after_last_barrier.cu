// why: threads return early, but nobody waits at a barrier after that
// launch: --kernel tail --grid 2 --block 96 --arg "x=arange(150)" --arg "y=empty(150)"
// launch: --arg n=150
// equals: y = x
__global__ void tail(const int* x, int* y, int n)
{
    __shared__ int s[96];
    const int i = blockIdx.x * 96 + threadIdx.x;
    if (i < n) s[threadIdx.x] = x[i];
    __syncthreads();
    if (i >= n) return;
    const int last = min(95, n - 1 - (int)blockIdx.x * 96);
    y[i] = s[last] - (last - (int)threadIdx.x);
}
