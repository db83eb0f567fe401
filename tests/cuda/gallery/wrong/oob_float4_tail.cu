// about: a copy by float4 rounds the count up, so the last vector leaves the array
// launch: --kernel copy4 --grid 1 --block 256 --arg "src=rng.random(1002)"
// launch: --arg "dst=inout(zeros(1002))" --arg n=1002
// expect: out-of-bounds
__global__ void copy4(const float* __restrict__ src, float* __restrict__ dst, int n) {
    int vectors = n / 4 + (n % 4 != 0);
    for (int v = threadIdx.x; v < vectors; v += blockDim.x) {
        float4 four = reinterpret_cast<const float4*>(src)[v];  // <- here
        reinterpret_cast<float4*>(dst)[v] = four;  // <- here
    }
}
