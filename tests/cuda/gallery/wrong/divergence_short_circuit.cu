// about: && skips a voting barrier for the threads whose first operand is false
// launch: --kernel any_big --grid 1 --block 64 --arg "x=rng.random(64)" --arg "y=empty(64)"
// expect: barrier-divergence
__global__ void any_big(const float* x, int* y)
{
    const int t = threadIdx.x;
    bool inner = t > 0 && t < 63;
    int some = inner && __syncthreads_or(x[t] > 0.5f);  // <- here
    y[t] = some;
}
