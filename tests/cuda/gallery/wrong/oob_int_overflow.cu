// about: a 32-bit index wraps below zero and slips through the guard
// launch: --kernel clear_column --grid 1 --block 64 --arg "m=ones(4096)"
// launch: --arg pitch=60000000 --arg n=4096
// expect: out-of-bounds
__global__ void clear_column(float* m, unsigned pitch, int n)
{
    int k = (int)(threadIdx.x * pitch);  // 36 * 60000000 is more than an int holds
    if (k < n)
        m[k] += 1.0f;  // <- here
}
