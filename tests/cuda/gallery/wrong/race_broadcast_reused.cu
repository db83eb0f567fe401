// about: thread 0 writes the next row's mean while other warps still read the last one
// launch: --kernel centre_rows --grid 1 --block 64 --arg "m=rng.random((4,64))"
// launch: --arg "r=empty((4,64))" --arg rows=4
// expect: race
__global__ void centre_rows(const float* m, float* r, int rows) {
    __shared__ float mean;
    int t = threadIdx.x;
    for (int row = 0; row < rows; row++) {
        if (t == 0) {
            float s = 0.f;
            for (int c = 0; c < 64; c++) s += m[row * 64 + c];
            mean = s / 64.f;  // <- here
        }
        __syncthreads();
        r[row * 64 + t] = m[row * 64 + t] - mean;  // <- here
    }
}
