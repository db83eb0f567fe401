// why: whole blocks leave, the others have all their threads at the barrier
// launch: --kernel some --grid 4 --block 32 --arg "x=rng.random(128)" --arg "y=inout(zeros(128))"
// equals: y.reshape(4, 32)[1::2] = x.reshape(4, 32)[1::2, ::-1]
__global__ void some(const float* x, float* y)
{
    if (blockIdx.x % 2 == 0) return;
    __shared__ float s[32];
    int i = blockIdx.x * 32 + threadIdx.x;
    s[threadIdx.x] = x[i];
    __syncthreads();
    y[i] = s[31 - threadIdx.x];
}
