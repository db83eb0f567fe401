// about: a seven-point stencil in 3-D guards x and y but forgets the last plane
// launch: --kernel laplace7 --grid 2x2x3 --block 8x4x2 --arg "u=rng.random((6,8,16))"
// launch: --arg "v=inout(zeros((6,8,16)))" --arg nx=16 --arg ny=8 --arg nz=6
// expect: out-of-bounds
#define AT(a, i, j, k) a[((k) * ny + (j)) * nx + (i)]

__global__ void laplace7(const float* u, float* v, int nx, int ny, int nz) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int j = blockIdx.y * blockDim.y + threadIdx.y;
  int k = blockIdx.z * blockDim.z + threadIdx.z;
  if (i < 1 || j < 1 || k < 1 || i >= nx - 1 || j >= ny - 1 || k >= nz) return;
  float centre = AT(u, i, j, k);
  float around = AT(u, i - 1, j, k) + AT(u, i + 1, j, k) + AT(u, i, j - 1, k) + AT(u, i, j + 1, k);
  around += AT(u, i, j, k - 1);
  around += AT(u, i, j, k + 1);  // <- here
  AT(v, i, j, k) = around - 6.0f * centre;
}
