// about: double buffering where the next load goes into the buffer that is still read
// launch: --kernel moving_window --grid 1 --block 64 --arg "in=rng.random(512)"
// launch: --arg "out=empty(512)" --arg tiles=8
// expect: race
#define B 64
__global__ void moving_window(const float* in, float* out, int tiles) {
  __shared__ float buf[2][B];
  int t = threadIdx.x;
  int cur = 0;
  buf[0][t] = in[t];
  __syncthreads();
  for (int k = 0; k < tiles; k++) {
    float mine = buf[cur][t];
    float other = buf[cur][(t + 1) % B];  // <- here
    if (k + 1 < tiles) buf[cur][t] = in[(k + 1) * B + t];  // <- here
    out[k * B + t] = mine + other;
    __syncthreads();
  }
}
