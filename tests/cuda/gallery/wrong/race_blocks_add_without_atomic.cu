// about: every block adds its part to one total without an atomic
// launch: --kernel total --grid 8 --block 32 --arg "x=rng.random(256)" --arg "sum=zeros(1)"
// expect: race
__global__ void total(const float* x, float* sum) {
    float v = x[blockIdx.x * 32 + threadIdx.x];
    for (int d = 16; d > 0; d /= 2) v += __shfl_down_sync(0xffffffff, v, d);
    if (threadIdx.x == 0) sum[0] += v;  // <- here
}
