// about: a convolution reads one coefficient behind a mask in constant memory
// launch: --kernel convolve --grid 2 --block 64 --arg "in=rng.random(128)"
// launch: --arg "out=empty(128)" --arg n=128 --arg radius=3
// expect: out-of-bounds
__constant__ float mask[5] = {0.1f, 0.2f, 0.4f, 0.2f, 0.1f};

__global__ void convolve(const float* in, float* out, int n, int radius) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float acc = 0.0f;
    for (int j = 0; j < 2 * radius; ++j) {
        int k = i + j - 2;
        if (k >= 0 && k < n) acc += mask[j] * in[k];  // <- here
    }
    out[i] = acc;
}
