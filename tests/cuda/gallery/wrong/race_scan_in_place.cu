// about: Hillis-Steele scan in one buffer: neighbours read and write in the same step
// launch: --kernel inclusive_scan --grid 1 --block 128 --arg "data=rng.integers(0,10,128)"
// expect: race
__global__ void inclusive_scan(int* data) {
  __shared__ int temp[128];
  int tid = threadIdx.x;
  temp[tid] = data[tid];
  __syncthreads();
  for (int offset = 1; offset < 128; offset *= 2) {
    if (tid >= offset)
      temp[tid] += temp[tid - offset];  // <- here
    __syncthreads();
  }
  data[tid] = temp[tid];
}
