// about: a lambda with a barrier is called by the even threads alone
// launch: --kernel swap --grid 1 --block 32 --arg "x=rng.random(32)" --arg "y=empty(32)"
// expect: barrier-divergence
__global__ void swap(const float* x, float* y)
{
    __shared__ float s[32];
    int t = threadIdx.x;
    auto meet = [&] { __syncthreads(); };  // <- here
    s[t] = x[t];
    if (t % 2 == 0) meet();  // <- here
    y[t] = s[t];
}
