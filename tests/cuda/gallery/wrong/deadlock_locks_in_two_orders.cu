// about: a transfer locks the account it takes from, then the other: two of them may hold one each
// launch: --kernel transfer --grid 8 --block 1 --arg "account=arange(2)" --arg "lock=zeros(2)"
// expect: deadlock
__global__ void transfer(int* account, int* lock)
{
    const int from = blockIdx.x % 2, to = 1 - from;
    while (atomicCAS(&lock[from], 0, 1) != 0) { }
    while (atomicCAS(&lock[to], 0, 1) != 0) { }  // <- here
    __threadfence();
    account[from] -= 7;
    account[to] += 7;
    __threadfence();
    atomicExch(&lock[to], 0);
    atomicExch(&lock[from], 0);
}
