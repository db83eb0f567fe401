// What tries step 4, and what the two launches are that `delta` is made of.
__global__ void tg_step_4(double* bytes, int fused, int N, int OUT, int IN)
{
    *bytes = predict_bytes(fused != 0, N, OUT, IN);
}

__global__ void tg_product(const float* gy, const float* w, float* gx, int N, int OUT, int IN)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= N * IN)
        return;
    float sum = 0.0f;
    for (int k = 0; k < OUT; ++k)
        sum += gy[i / IN * OUT + k] * w[k * IN + i % IN];
    gx[i] = sum;
}

__global__ void tg_mask(const float* h, float* gx, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        const float sum = gx[i], activation = h[i];
        gx[i] = activation > 0.0f ? sum : 0.0f;
    }
}
