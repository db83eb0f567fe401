// about: a queue counter is raised by atomics and read by a plain load at the same time
// launch: --kernel push_positive --grid 4 --block 64 --arg x=int32[256]:randint(1,9)
// launch: --arg queue=int32[256]:zeros:inout --arg tail=int32[1]:zeros --arg capacity=256
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
