// about: an index of the first large element, where a row may have none
// launch: --kernel first_above --grid 1 --block 8 --arg "x=ones((8,16))" --arg "y=inout(zeros((8,16)))"
// expect: uninitialized
__global__ void first_above(const float* x, float* y)
{
    int at;
    for (int i = 15; i >= 0; i--)
        if (x[threadIdx.x * 16 + i] > 1.5f) at = i;
    if (at < 16)  // <- here
        y[threadIdx.x * 16 + at] = 1;  // <- here
}
