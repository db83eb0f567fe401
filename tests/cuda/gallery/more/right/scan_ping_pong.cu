// why: two halves of one shared array take turns
// launch: --kernel scan --grid 1 --block 64 --arg "x=arange(64)" --arg "y=empty(64)"
// equals: y = np.cumsum(x)
__global__ void scan(const int* x, int* y)
{
    __shared__ int s[2][64];
    int t = threadIdx.x, from = 0;
    s[0][t] = x[t];
    __syncthreads();
    for (int o = 1; o < 64; o *= 2, from ^= 1) {
        s[from ^ 1][t] = s[from][t] + (t >= o ? s[from][t - o] : 0);
        __syncthreads();
    }
    y[t] = s[from][t];
}
