// about: float4 loads from an address that is one float off
// launch: --kernel sum4 --grid 1 --block 32 --arg "x=rng.random(132)" --arg "y=empty(32)"
// expect: misaligned
__global__ void sum4(const float* x, float* y) {
    const float4* v = reinterpret_cast<const float4*>(x + 1);
    float4 q = v[threadIdx.x];  // <- here
    y[threadIdx.x] = q.x + q.y + q.z + q.w;
}
