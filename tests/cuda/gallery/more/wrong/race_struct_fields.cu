// about: two threads share a struct: one writes its fields while the other copies it
// launch: --kernel merge --grid 1 --block 64 --arg "x=rng.random(64)" --arg "y=empty(1)"
// expect: race
// also: uninitialized
struct Part { float sum; int count; };
__global__ void merge(const float* x, float* y)
{
    __shared__ Part parts[64];
    int t = threadIdx.x;
    parts[t].sum = x[t];  // <- here
    parts[t].count = 1;  // <- here
    if (t == 0) {
        float sum = 0;
        for (int i = 0; i < 64; i++) {
            Part p = parts[i];  // <- here
            sum += p.sum / p.count;
        }
        y[0] = sum;
    }
}
