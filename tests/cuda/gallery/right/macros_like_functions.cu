// why: macros hold the index arithmetic and the guard; each argument is used in brackets
// launch: --kernel add_rows --grid 2x2 --block 16x4 --arg "a=arange(7*30).reshape(7,30)"
// launch: --arg "b=arange(7*30).reshape(7,30)"
// launch: --arg "c=empty((7,30))" --arg rows=7 --arg cols=30
// equals: c = a + b
#define CEIL_DIV(p, q) (((p) + (q) - 1) / (q))
#define GLOBAL_X (blockIdx.x * blockDim.x + threadIdx.x)
#define GLOBAL_Y (blockIdx.y * blockDim.y + threadIdx.y)
#define IDX2(r, c, ld) ((r) * (ld) + (c))
#define FOR_EACH_CELL(r, c, rows, cols)                                        \
    for (int r = GLOBAL_Y; r < (rows); r += gridDim.y * blockDim.y)            \
        for (int c = GLOBAL_X; c < (cols); c += gridDim.x * blockDim.x)

__global__ void add_rows(const int* a, const int* b, int* c, int rows, int cols)
{
    if (gridDim.x < CEIL_DIV(cols, blockDim.x)) return;
    FOR_EACH_CELL(i, j, rows, cols) {
        c[IDX2(i, j, cols)] = a[IDX2(i, j, cols)] + b[IDX2(i, j, cols)];
    }
}
