// about: the dynamic shared memory of the launch is counted in elements, not in bytes
// launch: --kernel reverse_block --grid 1 --block 256 --shared 256 --arg "x=arange(256)"
// expect: out-of-bounds
__global__ void reverse_block(int* x) {
    extern __shared__ int buf[];
    unsigned t = threadIdx.x;
    buf[t] = x[t];  // <- here
    __syncthreads();
    x[t] = buf[blockDim.x - 1 - t];  // <- here
}
