// about: a function fills its result only where it finds something
// launch: --kernel roots --grid 1 --block 16 --arg "x=arange(16)-8.0" --arg "y=empty(16)"
// expect: uninitialized
__device__ bool root(float v, float& result)
{
    if (v < 0) return false;
    result = sqrtf(v);
    return true;
}
__global__ void roots(const float* x, float* y)
{
    float r;
    root(x[threadIdx.x], r);
    y[threadIdx.x] = r;  // <- here
}
