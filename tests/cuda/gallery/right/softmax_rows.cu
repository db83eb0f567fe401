// why: the shared maximum and sum have a barrier before each reuse of the scratch array
// launch: --kernel softmax --grid 6 --block 64 --shared 256 --arg "z=rng.standard_normal((6,100))"
// launch: --arg "p=empty((6,100))" --arg cols=100
// equals: p = np.exp(z) / np.exp(z).sum(1, keepdims=True)
__global__ void softmax(const float* z, float* p, int cols)
{
    extern __shared__ float scratch[];
    const float* row = z + (size_t)blockIdx.x * cols;
    float* out = p + (size_t)blockIdx.x * cols;
    const int t = threadIdx.x;

    float top = -3.0e38f;
    for (int c = t; c < cols; c += blockDim.x) top = fmaxf(top, row[c]);
    scratch[t] = top;
    __syncthreads();
    for (int h = blockDim.x / 2; h; h /= 2) {
        if (t < h) scratch[t] = fmaxf(scratch[t], scratch[t + h]);
        __syncthreads();
    }
    top = scratch[0];
    __syncthreads();

    float sum = 0.0f;
    for (int c = t; c < cols; c += blockDim.x) sum += expf(row[c] - top);
    scratch[t] = sum;
    __syncthreads();
    for (int h = blockDim.x / 2; h; h /= 2) {
        if (t < h) scratch[t] += scratch[t + h];
        __syncthreads();
    }
    const float scale = 1.0f / scratch[0];
    for (int c = t; c < cols; c += blockDim.x) out[c] = expf(row[c] - top) * scale;
}
