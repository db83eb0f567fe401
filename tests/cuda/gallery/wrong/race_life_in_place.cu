// about: the game of life written back into the board that the neighbours still read
// launch: --kernel step --grid 2x2 --block 8x8 --arg "board=rng.integers(0,2,(16,16))"
// expect: race
__global__ void step(int* board) {
    const int n = 16;
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    int alive = 0;
    for (int dy = -1; dy <= 1; ++dy)
        for (int dx = -1; dx <= 1; ++dx)
            if (dx || dy)
                alive += board[((y + dy + n) % n) * n + (x + dx + n) % n];  // <- here
    int me = board[y * n + x];
    board[y * n + x] = alive == 3 || (me && alive == 2);  // <- here
}
