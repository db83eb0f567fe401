// why: an array in each thread's own memory, indexed by data, is nobody else's business
// launch: --kernel median5 --grid 1 --block 64 --arg "x=rng.random(68)" --arg "y=empty(64)"
// equals: y = np.median(np.lib.stride_tricks.sliding_window_view(x, 5), axis=1)
__global__ void median5(const float* x, float* y) {
    float w[5];
    for (int k = 0; k < 5; ++k) w[k] = x[threadIdx.x + k];
    for (int i = 1; i < 5; ++i) {
        float v = w[i];
        int j = i;
        for (; j > 0 && w[j - 1] > v; --j) w[j] = w[j - 1];
        w[j] = v;
    }
    y[threadIdx.x] = w[2];
}
