// about: a scatter whose byte offset is used as an element offset of a large stride
// launch: --kernel scatter_rows --grid 1 --block 32 --arg "x=rng.random(32)"
// launch: --arg "y=inout(zeros(32))" --arg pitch=134217728
// expect: out-of-bounds
__global__ void scatter_rows(const float* x, float* y, int pitch) {
    size_t row = threadIdx.x;
    y[row * pitch] = x[row];  // <- here
}
