// about: four threads set their bytes of one word by reading and writing the whole word
// launch: --kernel threshold --grid 1 --block 128 --arg "grey=rng.integers(0,256,128)"
// launch: --arg "packed=zeros(32)" --arg level=100
// expect: race
__global__ void threshold(const unsigned char* grey, unsigned int* packed, int level)
{
  __shared__ unsigned int words[32];
  const unsigned t = threadIdx.x;
  if (t < 32) words[t] = 0u;
  __syncthreads();
  const unsigned shift = (t & 3u) * 8u;
  const unsigned value = grey[t] > level ? 255u : 0u;
  words[t >> 2] = (words[t >> 2] & ~(255u << shift)) | (value << shift);  // <- here
  __syncthreads();
  if (t < 32) packed[t] = words[t];
}
