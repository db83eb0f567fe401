// why: threads at the faces write zero and skip the neighbours; index 0 is never passed below
// launch: --kernel laplace7 --grid 2x2x3 --block 8x4x2 --arg "u=rng.random((6,7,13))"
// launch: --arg "v=empty((6,7,13))" --arg nx=13 --arg ny=7 --arg nz=6
// equals: v = np.pad((u[2:] + u[:-2] - 6 * u[1:-1])[:, 1:-1, 1:-1]
//     + (u[:, 2:] + u[:, :-2])[1:-1, :, 1:-1]
//     + (u[:, :, 2:] + u[:, :, :-2])[1:-1, 1:-1], 1)
#define AT(a, i, j, k) a[((k) * ny + (j)) * nx + (i)]

__global__ void laplace7(const float* u, float* v, int nx, int ny, int nz) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int j = blockIdx.y * blockDim.y + threadIdx.y;
  int k = blockIdx.z * blockDim.z + threadIdx.z;
  if (i >= nx || j >= ny || k >= nz) return;
  bool face = i == 0 || j == 0 || k == 0 || i == nx - 1 || j == ny - 1 || k == nz - 1;
  float r = 0.0f;
  if (!face) {
    r = AT(u, i - 1, j, k) + AT(u, i + 1, j, k) + AT(u, i, j - 1, k) + AT(u, i, j + 1, k);
    r += AT(u, i, j, k - 1) + AT(u, i, j, k + 1) - 6.0f * AT(u, i, j, k);
  }
  AT(v, i, j, k) = r;
}
