// about: a shared histogram counts with ++ instead of an atomic
// launch: --kernel count_bins --grid 1 --block 256 --arg "v=rng.integers(0,4,256)"
// launch: --arg "hist=empty(4)"
// expect: race
__global__ void count_bins(const int *v, int *hist) {
	__shared__ int bins[4];
	if (threadIdx.x < 4)
		bins[threadIdx.x] = 0;
	__syncthreads();
	bins[v[threadIdx.x]]++;  // <- here
	__syncthreads();
	if (threadIdx.x < 4)
		hist[threadIdx.x] = bins[threadIdx.x];
}
