// about: saxpy without the guard for the last, partly filled block
// launch: --kernel saxpy --grid 4 --block 256 --arg a=2.0 --arg x=float32[1000]:rand
// launch: --arg y=float32[1000]:rand
// expect: out-of-bounds
__global__ void saxpy(float a, const float *x, float *y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = a * x[i] + y[i];  // <- here
}
