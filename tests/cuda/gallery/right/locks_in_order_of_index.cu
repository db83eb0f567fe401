// why: of two locks all threads take the one with the smaller index first
// launch: --kernel transfer --grid 8 --block 1 --arg "account=arange(2)" --arg "lock=zeros(2)"
// equals: account = account
__global__ void transfer(int* account, int* lock)
{
    const int from = blockIdx.x % 2, to = 1 - from;
    while (atomicCAS(&lock[min(from, to)], 0, 1) != 0) { }
    while (atomicCAS(&lock[max(from, to)], 0, 1) != 0) { }
    __threadfence();
    account[from] -= 7;
    account[to] += 7;
    __threadfence();
    atomicExch(&lock[to], 0);
    atomicExch(&lock[from], 0);
}
