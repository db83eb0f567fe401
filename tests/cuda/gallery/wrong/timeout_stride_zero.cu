// about: a loop whose stride argument is zero never ends
// launch: --kernel fill --grid 1 --block 32 --arg "y=inout(zeros(100))" --arg n=100
// launch: --arg stride=0
// expect: timeout
__global__ void fill(float* y, int n, int stride) {
    for (int i = threadIdx.x; i < n; i += stride)  // <- here
        y[i] = 1.0f;  // <- here
}
