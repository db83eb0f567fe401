// about: saxpy without the guard for the last, partly filled block
// launch: --kernel saxpy --grid 4 --block 256 --arg a=2.0 --arg "x=rng.random(1000)"
// launch: --arg "y=rng.random(1000)"
// expect: out-of-bounds
__global__ void saxpy(float a, const float *x, float *y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = a * x[i] + y[i];  // <- here
}
