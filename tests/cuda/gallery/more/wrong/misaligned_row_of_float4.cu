// about: rows of 10 floats are read four at a time
// launch: --kernel copy --grid 4 --block 2 --arg "x=rng.random((4,10))" --arg "y=inout(zeros((4,8)))"
// expect: misaligned
__global__ void copy(const float* x, float* y)
{
    const float4* row = reinterpret_cast<const float4*>(x + 10 * blockIdx.x);
    float4 v = row[threadIdx.x];  // <- here
    *reinterpret_cast<float4*>(y + 8 * blockIdx.x + 4 * threadIdx.x) = v;
}
