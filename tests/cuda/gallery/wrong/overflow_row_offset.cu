// about: row times pitch wraps, but the row is outside and the value is never used
// launch: --kernel clear --grid 1 --block 64 --arg "m=inout(ones(256))" --arg pitch=50000000
// launch: --arg rows=2 --arg columns=64
// expect: overflow
template <int UNUSED = 0> __device__ int offset(int row, int pitch) { return row * pitch; }  // <- here

__global__ void clear(float* m, int pitch, int rows, int columns)
{
    int row = threadIdx.x, start = offset(row, pitch);
    if (row < rows) m[row * columns + start % columns] = 0.0f;
}
