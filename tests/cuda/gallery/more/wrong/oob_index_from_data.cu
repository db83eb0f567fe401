// about: labels count from one, rows from zero
// launch: --kernel nll --grid 1 --block 8 --arg "p=rng.random((8,4))" --arg "label=1+arange(8)%4" --arg "loss=empty(8)"
// expect: out-of-bounds
__global__ void nll(const float* p, const int* label, float* loss)
{
    int i = threadIdx.x;
    loss[i] = -logf(p[i * 4 + label[i]]);  // <- here
}
