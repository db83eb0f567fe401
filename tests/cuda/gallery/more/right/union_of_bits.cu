// why: the bits of a float through a union
// launch: --kernel signs --grid 1 --block 32 --arg "x=rng.standard_normal(32)" --arg "y=empty(32)"
// equals: y = (x < 0).astype(int)
union Bits { float f; unsigned u; };
__global__ void signs(const float* x, int* y)
{
    Bits b;
    b.f = x[threadIdx.x];
    y[threadIdx.x] = (int)(b.u >> 31);
}
