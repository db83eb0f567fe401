// why: row_ptr has one element more than there are rows; the guard is on the row
// launch: --kernel spmv_csr --grid 3 --block 32 --arg "row_ptr=arange(65)"
// launch: --arg "col=rng.integers(0,64,64)" --arg "val=rng.random(64)" --arg "x=rng.random(64)"
// launch: --arg "y=empty(64)" --arg rows=64
// equals: y = val * x[col]
extern "C" __global__ void spmv_csr(const int* row_ptr, const int* col, const float* val,
                                    const float* x, float* y, int rows) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows) return;
    int begin = row_ptr[r], end = row_ptr[r + 1];
    float s = 0.f;
    for (int e = begin; e < end; e++) s += val[e] * x[col[e]];
    y[r] = s;
}
