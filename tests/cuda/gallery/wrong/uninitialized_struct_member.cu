// about: one member of a struct in shared memory is never set
// launch: --kernel spread --grid 1 --block 64 --arg "x=rng.random(64)" --arg "y=empty(64)"
// expect: uninitialized
struct Moments { double sum; int count; float scale; };

__global__ void spread(const float* x, float* y)
{
    __shared__ Moments m;
    if (threadIdx.x == 0) {
        m.sum = 0.0;
        for (int i = 0; i < 64; ++i) m.sum += x[i];
        m.count = 64;
    }
    __syncthreads();
    y[threadIdx.x] = (float)(m.sum / m.count) * m.scale;  // <- here
}
