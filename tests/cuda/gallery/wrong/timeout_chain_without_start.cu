// about: a chain of blocks whose last link waits for a flag that no block sets
// launch: --kernel backward_chain --grid 2 --block 32 --arg "flag=zeros(3)"
// launch: --arg "y=empty(2)"
// expect: timeout
__global__ void backward_chain(int* flag, int* y) {
    if (threadIdx.x == 0) {
        while (atomicAdd(&flag[blockIdx.x + 1], 0) == 0) { }  // <- here
        y[blockIdx.x] = (int)blockIdx.x;
        __threadfence();
        atomicExch(&flag[blockIdx.x], 1);
    }
}
