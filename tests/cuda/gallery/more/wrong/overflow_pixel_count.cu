// about: height, width and batch are multiplied in int before they are widened
// launch: --kernel mean --grid 1 --block 32 --arg "x=rng.random(32)" --arg "y=empty(32)" --arg n=1024
// launch: --arg height=2048 --arg width=2048
// expect: overflow
__global__ void mean(const float* x, float* y, int n, int height, int width)
{
    long long pixels = n * height * width;  // <- here
    y[threadIdx.x] = x[threadIdx.x] / (float)pixels;
}
