// about: shared memory is read across threads with no barrier after it was filled
// launch: --kernel reverse --grid 2 --block 128 --arg "d=rng.random(256)"
// launch: --arg "r=empty(256)"
// expect: race
// also: uninitialized
__global__ void reverse(const float* d, float* r) {
    __shared__ float s[128];
    int t = threadIdx.x, base = blockIdx.x * 128;
    s[t] = d[base + t];  // <- here
    r[base + t] = s[127 - t];  // <- here
}
