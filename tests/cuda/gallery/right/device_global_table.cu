// why: a table at file scope is read by all and written by none
// launch: --kernel lookup --grid 2 --block 32 --arg "day=rng.integers(0,12,64)"
// launch: --arg "length=empty(64)"
// equals: length = np.array([31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31])[day]
__device__ const int days_before[13] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365};

__device__ __forceinline__ int length_of(int m) { return days_before[m + 1] - days_before[m]; }

__global__ void lookup(const int* day, int* length) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    length[i] = length_of(day[i]);
}
