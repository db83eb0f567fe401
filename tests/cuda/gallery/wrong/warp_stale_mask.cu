// about: the mask is taken once, then lanes leave the loop and the others still name them
// launch: --kernel row_lengths --grid 1 --block 32 --arg "len=arange(32)"
// launch: --arg "y=empty(32)"
// expect: warp-sync
// also: deadlock
__global__ void row_lengths(const int* len, int* y) {
    const unsigned lane = threadIdx.x;
    const unsigned mask = __ballot_sync(0xffffffffu, len[lane] > 0);
    int seen = 0;
    for (int k = 0; k < len[lane]; ++k)
        seen += __popc(__ballot_sync(mask, k & 1));  // <- here
    __syncwarp();  // <- here
    y[lane] = seen;
}
