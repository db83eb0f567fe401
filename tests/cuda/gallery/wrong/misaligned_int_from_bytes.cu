// about: a 32-bit field of a packed record is read at a byte offset of one
// launch: --kernel parse --grid 1 --block 16 --arg bytes=uint8[80]:randint(0,256)
// launch: --arg field=int32[16]:empty
// expect: misaligned
__global__ void parse(const unsigned char* bytes, int* field)
{
    const unsigned char* record = bytes + 5 * threadIdx.x;
    field[threadIdx.x] = *(const int*)(record + 1);  // <- here
}
