// about: the weights of a layer are only read, says the launch
// launch: --kernel linear --grid 1 --block 8 --arg "w:in=rng.random(8)" --arg "x=rng.random(8)"
// launch: --arg "y=empty(8)"
// expect: read-only-write
__global__ void linear(float* w, const float* x, float* y)
{
    int i = threadIdx.x;
    w[i] *= 0.99f;  // <- here
    y[i] = w[i] * x[i];
}
