// why: a helper takes a shared tile by reference, another by pointer with its pitch
// launch: --kernel row_then_column --grid 1 --block 8x8 --arg "m=rng.integers(0,9,(8,8))"
// launch: --arg "y=empty((8,8))"
// equals: y = m + m.sum(0) + m.sum(1)[:, None]
__device__ int row_sum(int (&tile)[8][9], int r) {
  int s = 0;
  for (int c = 0; c < 8; ++c) s += tile[r][c];
  return s;
}

__device__ int column_sum(const int* tile, int pitch, int c) {
  int s = 0;
  for (int r = 0; r < 8; ++r) s += tile[r * pitch + c];
  return s;
}

__global__ void row_then_column(const int* m, int* y) {
  __shared__ int tile[8][9];
  const int c = threadIdx.x, r = threadIdx.y;
  tile[r][c] = m[r * 8 + c];
  __syncthreads();
  y[r * 8 + c] = tile[r][c] + row_sum(tile, r) + column_sum(&tile[0][0], 9, c);
}
