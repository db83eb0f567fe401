// conv2d as implicit GEMM: forward, and the gradients of input and filters.
//
//   see implicit_gemm.cuh for N C H W O KH KW OH OW P G CG OG
//
// The same products as after im2col (conv2d.cu, the step before this one), from the same main loop
// as matmul's largest tile (gemm_pipelined.cuh).  Only the loaders differ: columns are gathered
// from the image into shared memory.  Memory moves x, w and y, not KH * KW copies of x, and nothing
// is kept for backward but x and w.  With GEMM_MMA, 19 for tf32 or 16 for bf16, the main loop is
// that of gemm_mma.cuh, on tensor cores: factors are rounded, a warp owns 64 x 32 elements.
//
// One block owns 128 x 128 elements (64 x 64 for double) of a group's product, over all images; a
// thread 8 x 8 (4 x 4).  Grid (tiles, G), for the filters' gradient (tiles, G * chunks); block 256.
//
// conv2d_implicit_forward          y[g] (OG, N * P) = w[g] (OG, taps) @ columns
//     w (O, CG, KH, KW), x (N, C, H, W), b (O,) or null   T, read
//     y (N, O, OH, OW)   T, written
// conv2d_implicit_input_gradient   gx[g] (CG, N * H * W) = sum over taps of w[g, tap]^T @ gy moved
//     w, gy (N, O, OH, OW)   T, read                       gx (N, C, H, W)   T, written
//     With a stride of s, 1 - 1 / s^2 of the products are with zeros.
// conv2d_implicit_weight_gradient  gw[g] (OG, taps) = sum over n, P of gy[n, g] @ columns[n]^T
//     gy, x   T, read                                      gw (chunks, O, CG, KH, KW)   T, written
//     The chunks of a long sum are added by column_sums (linear.cu).
//
// Memory: neighbouring threads gather neighbouring outputs: pixels SW apart.
// Deterministic: fixed order, no atomics.
// numpy: y = conv2d(x, w, b) and its gradients, as ops/conv2d.py writes them
//
// __launch_bounds__(256, 1): 64 sums, the places that the loaders have worked out, addresses, and 16
// numbers on their way to the next panels.  It comes to 137 to 150 registers for float on sm_90: one
// block, 8 of 64 warps.
//
// operations of conv2d_implicit_forward: y * (2 * (C // G) * KH * KW + (b > 0))
// operations of conv2d_implicit_input_gradient: 2 * gy * (C // G) * KH * KW
// operations of conv2d_implicit_weight_gradient: 2 * gy * (C // G) * KH * KW
//
// instances: conv2d_implicit_forward<T>, conv2d_implicit_input_gradient<T>,
//            conv2d_implicit_weight_gradient<T> for T in float, double
// instances (GEMM_MMA=19): conv2d_implicit_forward<float>, conv2d_implicit_input_gradient<float>,
//                          conv2d_implicit_weight_gradient<float>
// instances (GEMM_MMA=16): conv2d_implicit_forward<float>, conv2d_implicit_input_gradient<float>,
//                          conv2d_implicit_weight_gradient<float>
#include "implicit_gemm.cuh"

template <typename T>
__global__ void __launch_bounds__(THREADS, 1)
conv2d_implicit_forward(const T* __restrict__ w, const T* __restrict__ x, const T* __restrict__ b,
                        T* __restrict__ y, CONVOLUTION_PARAMETERS)
{
    using Tile = Pipelined<T>;
    const Convolution at = CONVOLUTION;
    const int group = blockIdx.y, rows = at.group_filters();
    const int tiles_down = (rows + Tile::TM - 1) / Tile::TM;
    const int row0 = blockIdx.x % tiles_down * Tile::TM;
    const long long column0 = (long long)(blockIdx.x / tiles_down) * Tile::TN;
    LeftMatrix<T> filters(w + (long long)group * rows * at.taps(), 0, at.taps(), rows, row0);
    ImageColumns<T> columns(at, x, group, column0);
    const auto epilogue = [=](T sum, int channel) -> T { return b ? sum + b[channel] : sum; };
    convolution_tile<T>(filters, columns, 1, at.taps(), 1, 0,
                        [&](int r, int c, const T (&some)[NEIGHBOURS]) {
        write_to_images(y, some, row0 + r, rows, group * rows, O, column0 + c,
                        (long long)N * at.outputs(), at.outputs(), epilogue);
    });
}

template <typename T>
__global__ void __launch_bounds__(THREADS, 1)
conv2d_implicit_input_gradient(const T* __restrict__ w, const T* __restrict__ gy,
                               T* __restrict__ gx, CONVOLUTION_PARAMETERS)
{
    using Tile = Pipelined<T>;
    const Convolution at = CONVOLUTION;
    const int group = blockIdx.y, rows = at.group_channels();
    const int tiles_down = (rows + Tile::TM - 1) / Tile::TM;
    const int row0 = blockIdx.x % tiles_down * Tile::TM;
    const long long column0 = (long long)(blockIdx.x / tiles_down) * Tile::TN;
    FilterTap<T> filters(at, w, group, row0);
    OutputColumns<T> columns(at, gy, group, column0);
    const auto epilogue = [](T sum, int) -> T { return sum; };
    convolution_tile<T>(filters, columns, KH * KW, at.group_filters(), 1, 0,
                        [&](int r, int c, const T (&some)[NEIGHBOURS]) {
        write_to_images(gx, some, row0 + r, rows, group * rows, C, column0 + c,
                        (long long)N * H * W, H * W, epilogue);
    });
}

template <typename T>
__global__ void __launch_bounds__(THREADS, 1)
conv2d_implicit_weight_gradient(const T* __restrict__ gy, const T* __restrict__ x,
                                T* __restrict__ gw, CONVOLUTION_PARAMETERS, int chunks)
{
    using Tile = Pipelined<T>;
    const Convolution at = CONVOLUTION;
    const int group = blockIdx.y % G, chunk = blockIdx.y / G;
    const int rows = at.group_filters(), tiles_down = (rows + Tile::TM - 1) / Tile::TM;
    const int row0 = blockIdx.x % tiles_down * Tile::TM, tap0 = blockIdx.x / tiles_down * Tile::TN;
    LeftMatrix<T> left_factor(gy + (long long)group * rows * at.outputs(),
                              (long long)O * at.outputs(), at.outputs(), rows, row0);
    ImageRows<T> columns(at, x, group, tap0);
    T* to = gw + ((long long)chunk * O + group * rows) * at.taps();
    convolution_tile<T>(left_factor, columns, N, at.outputs(), chunks, chunk,
                        [&](int r, int c, const T (&some)[NEIGHBOURS]) {
        if (row0 + r >= rows) return;
#pragma unroll
        for (int j = 0; j < NEIGHBOURS; ++j)
            if (tap0 + c + j < at.taps())
                to[(long long)(row0 + r) * at.taps() + tap0 + c + j] = some[j];
    });
}
