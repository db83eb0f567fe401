// about: the lanes at the end of the data write nothing, and all of the tile is added
// launch: --kernel total --grid 1 --block 64 --arg "x=rng.random(50)" --arg "y=empty(1)" --arg n=50
// expect: uninitialized
__global__ void total(const float* x, float* y, int n)
{
    __shared__ float s[64];
    if (threadIdx.x < n) s[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 0) {
        float sum = 0;
        for (int i = 0; i < 64; i++) sum += s[i];  // <- here
        y[0] = sum;
    }
}
