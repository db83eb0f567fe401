// about: row and column are swapped in the index of an image that is not square
// launch: --kernel invert --grid 3x2 --block 16x16 --arg "img=rng.integers(0,256,(24,40))"
// launch: --arg "res=inout(zeros((24,40)))" --arg width=40 --arg height=24
// expect: out-of-bounds
__global__ void invert(const unsigned char *img, unsigned char *res, int width, int height)
{
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (col < width && row < height) {
        int k = row * width + col;
        res[k] = 255 - img[col * width + row];  // <- here
    }
}
