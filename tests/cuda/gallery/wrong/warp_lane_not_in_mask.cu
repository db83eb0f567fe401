// about: all 32 lanes call with a mask that names the lower sixteen
// launch: --kernel broadcast --grid 1 --block 32 --arg "x=arange(32)" --arg "y=empty(32)"
// expect: warp-sync
__global__ void broadcast(const int* x, int* y) {
  int v = x[threadIdx.x];
  y[threadIdx.x] = __shfl_sync(0x0000ffffu, v, 0);  // <- here
}
