// why: an offset beyond 32 bits is formed in 64 and brought back before it is used
// launch: --kernel wrap --grid 1 --block 32 --arg "x=arange(32)" --arg "y=empty(32)" --arg pitch=2000000000
// equals: y = x
__global__ void wrap(const int* x, int* y, int pitch)
{
    size_t at = (size_t)threadIdx.x * pitch;
    long long far = (long long)pitch * 8 + threadIdx.x;
    y[threadIdx.x] = x[at / pitch] + (int)(far - far);
}
