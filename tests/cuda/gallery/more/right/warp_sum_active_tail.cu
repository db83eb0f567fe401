// why: the lanes that have an element vote before the sum, and take each other's values
// launch: --kernel total --grid 1 --block 64 --arg "x=rng.random(50)" --arg "y=zeros(1)" --arg n=50
// equals: y = np.array([x.sum()])
__global__ void total(const float* x, float* y, int n)
{
    const int i = threadIdx.x;
    const unsigned mask = __ballot_sync(0xffffffffu, i < n);
    if (i >= n) return;
    float v = x[i];
    const int lanes = __popc(mask);
    for (int o = 16; o > 0; o /= 2) {
        float w = __shfl_down_sync(mask, v, o);
        v += i % 32 + o < lanes ? w : 0.0f;
    }
    if (i % 32 == 0) atomicAdd(y, v);
}
