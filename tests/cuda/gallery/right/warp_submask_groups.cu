// why: four groups of eight lanes, each with a mask of its own and loops of its own length
// launch: --kernel ragged_sums --grid 1 --block 64 --arg "len=rng.integers(0,40,8)"
// launch: --arg "m=rng.integers(0,9,(8,40))" --arg "y=empty(8)"
// equals: y = np.array([m[r, :len[r]].sum() for r in range(8)])
__global__ void ragged_sums(const int* len, const int* m, int* y) {
    const int group = threadIdx.x / 8, lane = threadIdx.x % 8;
    const unsigned mask = 0xffu << (group % 4 * 8);
    int sum = 0;
    for (int base = 0; base < len[group]; base += 8) {
        int v = base + lane < len[group] ? m[group * 40 + base + lane] : 0;
        for (int o = 4; o > 0; o /= 2) v += __shfl_xor_sync(mask, v, o, 8);
        sum += v;
    }
    if (lane == 0) y[group] = sum;
}
