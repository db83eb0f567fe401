// about: every thread spins on a flag that no thread sets
// launch: --kernel wait_for_host --grid 1 --block 32 --arg "flag=zeros(1)"
// launch: --arg "y=empty(32)"
// expect: timeout
__global__ void wait_for_host(const volatile int* flag, int* y)
{
    while (flag[0] == 0) { }  // <- here
    y[threadIdx.x] = 1;
}
