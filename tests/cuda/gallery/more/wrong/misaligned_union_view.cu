// about: a stream of bytes is read as shorts from an odd place
// launch: --kernel shorts --grid 1 --block 8 --arg "x=arange(20)" --arg "y=empty(8)"
// expect: misaligned
__global__ void shorts(const unsigned char* x, int* y)
{
    const unsigned short* s = (const unsigned short*)(x + 1);
    y[threadIdx.x] = s[threadIdx.x];  // <- here
}
