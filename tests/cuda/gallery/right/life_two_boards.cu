// why: the old board is only read and the new one only written
// launch: --kernel step --grid 2x3 --block 8x8 --arg "board=rng.integers(0,2,(20,13))"
// launch: --arg "next=empty((20,13))" --arg w=13 --arg h=20
// equals: next = (lambda alive: (alive == 3) | ((board == 1) & (alive == 2)))(
//     sum(np.roll(board, (j, i), (0, 1)) for j in (-1, 0, 1) for i in (-1, 0, 1) if i or j))
__global__ void step(const unsigned char* board, unsigned char* next, int w, int h) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    int alive = 0;
    for (int dy = -1; dy <= 1; ++dy)
        for (int dx = -1; dx <= 1; ++dx)
            if (dx || dy) alive += board[((y + dy + h) % h) * w + (x + dx + w) % w];
    next[y * w + x] = alive == 3 || (board[y * w + x] && alive == 2);
}
