// why: a hash wraps on purpose, and it is unsigned; signed numbers are cut only after 64 bits
// launch: --kernel shuffled --grid 2 --block 64 --arg "x=arange(128)" --arg "y=empty(128)"
// equals: np.sort(y) = np.sort(x)
__global__ void shuffled(const int* x, int* y)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned h = (i * 2654435761u) ^ 0x9e3779b9u;
    h = h * 1664525u + 1013904223u;
    long long far = (long long)i * 3000000000ll;
    y[h & 127u] = x[i] + (int)(far - far);
}
