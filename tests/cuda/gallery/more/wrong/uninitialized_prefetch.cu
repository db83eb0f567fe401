// about: the register that holds the next element is used before it is first loaded
// launch: --kernel pairs --grid 1 --block 8 --arg "x=rng.random((8,6))" --arg "y=empty(8)"
// expect: uninitialized
__global__ void pairs(const float* x, float* y)
{
    float now, next, sum = 0;
    for (int i = 0; i < 6; i++) {
        now = next;
        next = x[threadIdx.x * 6 + i];
        sum += now * next;
    }
    y[threadIdx.x] = sum;  // <- here
}
