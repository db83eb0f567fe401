// why: a function sorts two values that it is handed by reference
// launch: --kernel sort2 --grid 1 --block 32 --arg "x=rng.random(64)" --arg "y=empty(64)"
// equals: y = np.sort(x.reshape(32, 2), axis=1).ravel()
template <class T> __device__ void put_in_order(T& a, T& b)
{
    if (b < a) { T c = a; a = b; b = c; }
}
__global__ void sort2(const float* x, float* y)
{
    float a, b;
    a = x[2 * threadIdx.x], b = x[2 * threadIdx.x + 1];
    put_in_order(a, b);
    y[2 * threadIdx.x] = a, y[2 * threadIdx.x + 1] = b;
}
