// about: a tile is read turned before the others have filled it
// launch: --kernel turn --grid 1 --block 16x16 --arg "x=rng.random((16,16))" --arg "y=empty((16,16))"
// expect: race
// also: uninitialized
__global__ void turn(const float* x, float* y)
{
    __shared__ float tile[16][17];
    tile[threadIdx.y][threadIdx.x] = x[threadIdx.y * 16 + threadIdx.x];  // <- here
    y[threadIdx.y * 16 + threadIdx.x] = tile[threadIdx.x][threadIdx.y];  // <- here
}
