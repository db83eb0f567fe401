// why: a 32x33 tile; eight rows of threads each move four rows, the edges are guarded on both sides
// launch: --kernel "transpose<double>" --grid 2x3 --block 32x8 --arg "a=rng.random((70,45))"
// launch: --arg "at=empty((45,70))" --arg rows=70 --arg cols=45
// equals: at = a.T
const int TILE_DIM = 32, BLOCK_ROWS = 8;

template <class T>
__global__ void transpose(const T* a, T* at, int rows, int cols)
{
  __shared__ T tile[TILE_DIM][TILE_DIM + 1];
  int x = blockIdx.x * TILE_DIM + threadIdx.x;
  int y = blockIdx.y * TILE_DIM + threadIdx.y;
  for (int j = 0; j < TILE_DIM; j += BLOCK_ROWS)
    if (x < cols && y + j < rows) tile[threadIdx.y + j][threadIdx.x] = a[(y + j) * cols + x];
  __syncthreads();
  x = blockIdx.y * TILE_DIM + threadIdx.x;
  y = blockIdx.x * TILE_DIM + threadIdx.y;
  for (int j = 0; j < TILE_DIM; j += BLOCK_ROWS)
    if (x < rows && y + j < cols) at[(y + j) * rows + x] = tile[threadIdx.x][threadIdx.y + j];
}
