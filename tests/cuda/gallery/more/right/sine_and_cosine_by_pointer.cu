// why: functions that write through pointers give their locals a value
// launch: --kernel angle --grid 1 --block 16 --arg "x=rng.random(16)" --arg "y=empty(16)"
// equals: y = np.ones(16)
__global__ void angle(const float* x, float* y)
{
    float s, c, whole;
    int e;
    sincosf(x[threadIdx.x], &s, &c);
    float m = frexpf(x[threadIdx.x], &e), r = modff(x[threadIdx.x], &whole);
    y[threadIdx.x] = s * s + c * c + 0 * (m + r + whole + e);
}
