// why: float4 where four are left, single elements behind them
// launch: --kernel twice --grid 1 --block 32 --arg "x=rng.random(70)" --arg "y=empty(70)" --arg n=70
// equals: y = 2 * x
__global__ void twice(const float* x, float* y, int n)
{
    int i = 4 * threadIdx.x;
    if (i + 3 < n) {
        float4 v = *(const float4*)(x + i);
        v.x *= 2, v.y *= 2, v.z *= 2, v.w *= 2;
        *(float4*)(y + i) = v;
    } else
        for (; i < n; i++) y[i] = 2 * x[i];
}
