// why: a local array has values where they are read, and a pair is filled by a function
// launch: --kernel pick --grid 1 --block 64 --arg "x=rng.random(64)" --arg "y=empty(64)" --arg n=64
// equals: y = np.where(np.arange(64) < 63, np.minimum(x, np.roll(x, -1)), x)
struct Pair { float first, second; int count; };

__device__ void read(const float* x, int i, int n, Pair& pair)
{
    pair.first = x[i];
    pair.count = i + 1 < n ? 2 : 1;
    if (pair.count == 2) pair.second = x[i + 1];
}

__global__ void pick(const float* x, float* y, int n)
{
    Pair pair;
    read(x, threadIdx.x, n, pair);
    float candidates[4];
    candidates[0] = pair.first;
    if (pair.count > 1) candidates[1] = pair.second;
    float best = candidates[0];
    for (int i = 1; i < pair.count; i++) best = fminf(best, candidates[i]);
    y[threadIdx.x] = best;
}
