// about: each branch of an if has a barrier of its own
// launch: --kernel split --grid 1 --block 64 --arg "y=empty(64)"
// expect: barrier-divergence
__global__ void split(int* y)
{
    __shared__ int s[64];
    int t = threadIdx.x;
    if (t < 32) {
        s[t] = 1;
        __syncthreads();  // <- here
    } else {
        s[t] = 2;
        __syncthreads();  // <- here
    }
    y[t] = s[63 - t];
}
