// about: half the block spins on a flag that the other half sets behind a barrier of the block
// launch: --kernel produce --grid 1 --block 64 --arg "x=rng.random(64)" --arg "y=empty(64)"
// expect: deadlock, timeout
__global__ void produce(const float* x, float* y) {
    __shared__ volatile int go;
    if (threadIdx.x == 0) go = 0;
    __syncthreads();
    if (threadIdx.x >= 32)
        while (go == 0) { }  // <- here
    __syncthreads();  // <- here
    if (threadIdx.x == 0) go = 1;
    y[threadIdx.x] = x[threadIdx.x];
}
