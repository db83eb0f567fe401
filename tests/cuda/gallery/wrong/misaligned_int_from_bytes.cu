// about: a 32-bit field of a packed record is read at a byte offset of one
// launch: --kernel parse --grid 1 --block 16 --arg "bytes=rng.integers(0,256,80)"
// launch: --arg "field=empty(16)"
// expect: misaligned
__global__ void parse(const unsigned char* bytes, int* field)
{
    const unsigned char* record = bytes + 5 * threadIdx.x;
    field[threadIdx.x] = *(const int*)(record + 1);  // <- here
}
