// conv2d: the product of filters and columns with the bias added, and the bias's gradient.
//
//   N G        batch, groups                  O     output channels
//   P = OH*OW  windows of an image            K = (C/G)*KH*KW
//
// conv2d_forward, after im2col (im2col.cu)
//   One thread owns 4x4 elements of y[n, g] (GEMM_TILE=64) or one element (GEMM_TILE=16).
//   Grid (tiles of y[n, g], N * G), at most 65535 on the second axis; block 256.
//     w (G, O/G, K), cols (N, G, K, P), b (O,)   T, read       y (N, G, O/G, P)   T, written
//   Memory: see gemm.cuh; the filters are read once for each tile of each image.
//   numpy:   y = w @ cols + b.reshape(G, O/G, 1)
//
// conv2d_bias_gradient
//   One block owns one channel of one chunk of images; a thread sums every 256th of its elements.
//   Grid (O, chunks); block 256.
//     gy (N, O, P)   T, read                     sums (chunks, O)   T, written
//   A chunk of one channel has less than 2^31 elements.
//   Memory: neighbouring threads read neighbours.  The sums of several chunks are added by
//   column_sums (linear.cu).
//   numpy:   sums[i] = gy[i * images_per_chunk : (i + 1) * images_per_chunk].sum(axis=(0, 2))
//
// Backward is launches of matmul.cu and im2col.cu:
//   gw[g] = sum over n of gy[n, g] @ cols[n, g]^T        gx = col2im(w[g]^T @ gy[n, g])
// Deterministic: fixed order, no atomics.
//
// instances (GEMM_TILE=16): conv2d_forward<T> for T in float, double
// instances (GEMM_TILE=64): conv2d_forward<T> for T in float, double
// operations of conv2d_forward: (2 * K + 1) * N * G * group_channels * P
// operations of conv2d_bias_gradient: gy
#include "gemm.cuh"
#include "long_sum.cuh"

template <typename T>
__global__ void __launch_bounds__(THREADS, 2)
conv2d_forward(const T* __restrict__ w, const T* __restrict__ cols, const T* __restrict__ b,
               T* __restrict__ y, int N, int G, int group_channels, int P, int K)
{
    const GemmProblem<T> p = {
        w, cols, y, group_channels, P, K, N, G,
        0, (long long)group_channels * K,            // each image meets the same filters
        (long long)G * K * P, (long long)K * P, 1, 0, 0,
    };
    gemm<T, false, false>(p, [=](T sum, long long z, int row, int) -> T {
        return sum + b[z % G * group_channels + row];
    });
}

template <typename T>
__global__ void __launch_bounds__(THREADS)
conv2d_bias_gradient(const T* __restrict__ gy, T* __restrict__ sums, int N, int O, int P,
                     int images_per_chunk)
{
    __shared__ T partial[256];
    const int channel = blockIdx.x;
    const int first = blockIdx.y * images_per_chunk, images = min(images_per_chunk, N - first);

    LongSum<T> sum;
    for (unsigned i = threadIdx.x; i < (unsigned)images * P; i += blockDim.x) {
        const long long image = first + i / P;
        sum.add(gy[(image * O + channel) * P + i % P]);
    }
    partial[threadIdx.x] = sum.value();
    for (int half = 128; half > 0; half /= 2) {  // a tree: always the same pairs
        __syncthreads();
        if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
    }
    if (threadIdx.x == 0) sums[(long long)blockIdx.y * O + channel] = partial[0];
}
