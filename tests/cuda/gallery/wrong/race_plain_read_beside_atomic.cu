// about: a queue counter is raised by atomics and read by a plain load at the same time
// launch: --kernel push_positive --grid 4 --block 64 --arg "x=rng.integers(1,9,256)"
// launch: --arg "queue=inout(zeros(256))" --arg "tail=zeros(1)" --arg capacity=256
// expect: race
__global__ void push_positive(const int* x, int* queue, int* tail, int capacity)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (*tail >= capacity) return;  // <- here
    if (x[i] > 0) {
        int at = atomicAdd(tail, 1);  // <- here
        queue[at] = x[i];
    }
}
