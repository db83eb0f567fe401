// about: a backward difference whose first element looks at index -1
// launch: --kernel backward_difference --grid 2 --block 128 --arg "price=rng.standard_normal(256)"
// launch: --arg "change=empty(256)" --arg days=256
// expect: out-of-bounds
__global__ void backward_difference(const double * __restrict__ price,
                                    double * __restrict__ change, const int days)
{
  const int day = threadIdx.x + blockIdx.x * blockDim.x;
  if (day < days)
    change[day] = price[day] - price[day - 1];  // <- here
}
