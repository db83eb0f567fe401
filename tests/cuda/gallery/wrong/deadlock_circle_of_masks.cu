// about: three lanes wait for each other in a circle of three pairs
// launch: --kernel circle --grid 1 --block 3 --arg "y=empty(3)"
// expect: deadlock, warp-sync
__global__ void circle(int* y)
{
    unsigned lane = threadIdx.x;
    unsigned first = (1u << lane) | (1u << (lane + 1) % 3);
    unsigned second = (1u << lane) | (1u << (lane + 2) % 3);
    __syncwarp(first);  // <- here
    __syncwarp(second);  // <- here
    y[lane] = 1;
}
