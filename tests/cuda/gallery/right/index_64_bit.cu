// why: the product of row and pitch is formed in 64 bits before it is cut to the array's size
// launch: --kernel pick --grid 1 --block 64 --arg "x=rng.random(4096)" --arg "y=empty(64)"
// launch: --arg pitch=60000001 --arg n=4096
// equals: y = x[(np.arange(64, dtype=np.int64) * 60000001) % 4096]
__global__ void pick(const float* x, float* y, long long pitch, long long n)
{
    long long row = threadIdx.x;
    long long at = (row * pitch) % n;
    y[row] = x[at];
}
