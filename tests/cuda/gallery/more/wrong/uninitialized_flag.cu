// about: a flag that only one branch sets decides another branch
// launch: --kernel clamp --grid 1 --block 32 --arg "x=rng.random(32)" --arg "y=empty(32)"
// expect: uninitialized
__global__ void clamp(const float* x, float* y)
{
    bool large;
    float v = x[threadIdx.x];
    if (v > 0.9f) large = true;
    y[threadIdx.x] = 0;
    if (large) y[threadIdx.x] = v;  // <- here
}
