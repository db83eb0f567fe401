// why: who finds the second lock taken gives the first one back, and tries again
// launch: --kernel transfer --grid 8 --block 1 --arg "account=arange(2)" --arg "lock=zeros(2)"
// equals: account = account
__global__ void transfer(int* account, int* lock)
{
    const int from = blockIdx.x % 2, to = 1 - from;
    for (bool done = false; !done;) {
        while (atomicCAS(&lock[from], 0, 1) != 0) { }
        if (atomicCAS(&lock[to], 0, 1) == 0) {
            __threadfence();
            account[from] -= 7;
            account[to] += 7;
            __threadfence();
            atomicExch(&lock[to], 0);
            done = true;
        }
        atomicExch(&lock[from], 0);
    }
}
