// about: a helper sorts three values in place, and the kernel hands it the const input
// launch: --kernel median3 --grid 1 --block 32 --arg "x=rng.integers(0,1000,96)"
// launch: --arg "y=empty(32)"
// expect: read-only-write
__device__ void put_in_order(int& a, int& b) {
    int low = a < b ? a : b, high = a < b ? b : a;
    a = low;   // <- here
    b = high;  // <- here
}

__global__ void median3(const int* x, int* y) {
    int* v = const_cast<int*>(x) + 3 * threadIdx.x;
    put_in_order(v[0], v[1]);  // <- here
    put_in_order(v[1], v[2]);  // <- here
    put_in_order(v[0], v[1]);  // <- here
    y[threadIdx.x] = v[1];
}
