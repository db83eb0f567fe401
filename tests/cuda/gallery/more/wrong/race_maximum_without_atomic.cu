// about: the largest element is looked for by compare and plain store
// launch: --kernel largest --grid 2 --block 32 --arg "x=rng.random(64)" --arg "best=zeros(1)"
// expect: race
__global__ void largest(const float* x, float* best)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (x[i] > best[0]) best[0] = x[i];  // <- here
}
