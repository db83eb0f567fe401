// about: a result is accumulated into an output array that nobody has cleared
// launch: --kernel row_sums --grid 1 --block 32 --arg "m=rng.random((32,10))"
// launch: --arg "y=empty(32)"
// expect: uninitialized
__global__ void row_sums(const float* m, float* y)
{
    int r = threadIdx.x;
    for (int c = 0; c < 10; ++c)
        y[r] += m[r * 10 + c];  // <- here
}
