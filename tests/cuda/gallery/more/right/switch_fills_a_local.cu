// why: every way through the switch sets the result
// launch: --kernel act --grid 1 --block 32 --arg "x=rng.standard_normal(32)" --arg "y=empty(32)" --arg kind=1
// equals: y = np.maximum(x, 0)
__global__ void act(const float* x, float* y, int kind)
{
    float v = x[threadIdx.x], r;
    switch (kind) {
        case 0: r = v; break;
        case 1: r = fmaxf(v, 0); break;
        default: r = tanhf(v);
    }
    y[threadIdx.x] = r;
}
