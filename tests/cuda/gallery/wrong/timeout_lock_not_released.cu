// about: the first thread takes a lock and leaves without giving it back
// launch: --kernel locked_count --grid 2 --block 32 --arg "lock=zeros(1)"
// launch: --arg "count=zeros(1)"
// expect: timeout
extern "C" __global__ void locked_count(int* lock, int* count)
{
    if (threadIdx.x == 0) {
        while (atomicCAS(lock, 0, 1) != 0) { }  // <- here
        __threadfence();
        *count += 1;
        __threadfence();
    }
}
