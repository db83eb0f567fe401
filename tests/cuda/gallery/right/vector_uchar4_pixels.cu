// why: a pixel is one uchar4; threads that share a cache line share no byte
// launch: --kernel to_grey --grid 2x2 --block 16x8 --arg "rgba=rng.integers(0,256,(12,20,4))"
// launch: --arg "grey=empty((12,20))" --arg w=20 --arg h=12
// equals: grey = (rgba[..., :3].astype(np.int32) @ np.array([77, 150, 29])) >> 8
__global__ void to_grey(const unsigned char* rgba, unsigned char* grey, int w, int h)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    uchar4 p = ((const uchar4*)rgba)[y * w + x];
    grey[y * w + x] = (unsigned char)((p.x * 77 + p.y * 150 + p.z * 29) >> 8);
}
