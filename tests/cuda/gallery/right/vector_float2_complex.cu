// why: complex numbers as float2 in a shared array; each is stored and loaded whole
// launch: --kernel "rotate_sum<32>" --grid 1 --block 32 --arg "z=rng.standard_normal((32,2))"
// launch: --arg "r=empty((32,2))"
// equals: r = np.stack([-z[::-1, 1], z[::-1, 0]], 1)
template <int N>
__global__ void rotate_sum(const float2* z, float2* r) {
    __shared__ float2 s[N];
    const int t = threadIdx.x;
    float2 v = z[t];
    s[t] = make_float2(-v.y, v.x);
    __syncthreads();
    r[t] = s[N - 1 - t];
}
