// why: all threads take the same branch after __syncthreads_or, so the loop's barriers match
// launch: --kernel relax --grid 1 --block 66 --arg "u=rng.random(66)" --arg "steps=empty(1)"
// equals: u.mean() = u.mean()
// equals: np.ptp(u) < 0.2 = np.bool_(True)
__global__ void relax(float* u, int* steps)
{
    __shared__ float s[66];
    const int i = threadIdx.x;
    s[i] = u[i];
    __syncthreads();
    int k = 0;
    for (;; ++k) {
        float next = (s[(i + 65) % 66] + s[i] + s[(i + 1) % 66]) / 3.0f;
        float change = fabsf(next - s[i]);
        bool moves = __syncthreads_or(change > 1e-4f);
        s[i] = next;
        if (!moves) break;
        __syncthreads();
    }
    u[i] = s[i];
    if (i == 0) *steps = k;
}
