// conv2d as implicit GEMM: forward, and the gradients of input and filters.
//
//   see implicit_gemm.cuh for N C H W O KH KW OH OW P G CG OG, TILE_ROWS and TABLE
//
// The same products as after im2col (conv2d.cu, step 1 of convolution), from the same main loop as
// matmul's largest tile (gemm_pipelined.cuh).  Only the loaders differ: columns are gathered from the
// image into shared memory.  Memory moves x, w and y, not KH * KW copies of x, and nothing is kept for
// backward but x and w.
//
// Step 2 (TABLE=0): each thread works out where its elements lie, by divisions for each.  Of what a
// main loop issues 69 % are multiply-adds forward, 58 and 73 % for the gradients of images, filters.
// Step 3 (TABLE=1): 16 threads work that out for all, a step ahead: 82, 78 and 80 %.  Also
//     TILE_ROWS   a tile of 128 filters does four times the work that 32 filters need.  Of a tile of
//                 32 rows 59 % are multiply-adds, of 64 rows 72 %: each element that is gathered
//                 serves fewer of them.
//     chunks      where blocks are too few for all multiprocessors, several share the sum of a tile:
//                 each writes a part of the result, and column_sums (linear.cu) adds the parts
// With GEMM_MMA, 19 for tf32 or 16 for bf16, the main loop is that of gemm_mma.cuh, on tensor cores:
// factors are rounded, a warp owns 64 x 32 elements.
//
// One block owns TILE_ROWS x 128 elements (64 x 64 or 32 x 128 for double) of a chunk of a group's
// product, over all images; a thread 8 x 8 of 128 rows, 4 x 8 of 64, 4 x 4 of 32 or of doubles.
// Grid (tiles, G * chunks); block 256.
//
// conv2d_implicit_forward          y[g] (OG, N * P) = w[g] (OG, taps) @ columns
//     w (O, CG, KH, KW), x (N, C, H, W), b (O,) or null   T, read
//     y (chunks, N, O, OH, OW)   T, written: b is part of the first chunk
// conv2d_implicit_input_gradient   gx[g] (CG, N * H * W) = w[g]^T (CG, OG * KH * KW) @ gy moved
//     w, gy (N, O, OH, OW)   T, read               gx (chunks, N, C, H, W)   T, written
//     With a stride of s, 1 - 1 / s^2 of the products are with zeros.
// conv2d_implicit_weight_gradient  gw[g] (OG, taps) = sum over n, P of gy[n, g] @ columns[n]^T
//     gy, x   T, read                              gw (chunks, O, CG, KH, KW)   T, written
// An image, and its outputs, have less than 2^31 elements.
//
// Memory: neighbouring threads gather neighbouring outputs: pixels SW apart.
// Deterministic: fixed order, no atomics; chunks depend on the shapes alone.
// numpy: y = conv2d(x, w, b) and its gradients, as ops/windows/conv2d.py writes them
//
// __launch_bounds__(256, 2): 64 sums, what a thread has fetched, addresses: 126 registers for float on
// sm_90 with 128 rows, so that two blocks fit, 16 of 64 warps.
//
// operations of conv2d_implicit_forward: N * O * OH * OW * (2 * (C // G) * KH * KW + (b > 0))
// operations of conv2d_implicit_input_gradient: 2 * gy * (C // G) * KH * KW
// operations of conv2d_implicit_weight_gradient: 2 * gy * (C // G) * KH * KW
// issued operations of conv2d_implicit_forward<float>:
//     (2 * G * TILE_ROWS * ceil_div(OG, TILE_ROWS) * 128 * ceil_div(N * OH * OW, 128)
//      * 16 * ceil_div(CG * KH * KW, 16))
// issued operations of conv2d_implicit_input_gradient<float>:
//     (2 * G * TILE_ROWS * ceil_div(CG, TILE_ROWS) * 128 * ceil_div(N * H * W, 128)
//      * 16 * ceil_div(OG * KH * KW, 16))
// issued operations of conv2d_implicit_weight_gradient<float>:
//     (2 * G * TILE_ROWS * ceil_div(OG, TILE_ROWS) * 128 * ceil_div(CG * KH * KW, 128)
//      * N * 16 * ceil_div(OH * OW, 16))
//
// main loop of conv2d_implicit_forward<float> (GEMM_MMA=19): at least 0.11 HMMA
// main loop of conv2d_implicit_forward<float> (GEMM_MMA=16): at least 0.07 HMMA
// main loop of conv2d_implicit_forward<float> (TILE_ROWS=128, TABLE=1): at least 0.75 FFMA,
//     at most 0 divisions
// main loop of conv2d_implicit_forward<float> (TILE_ROWS=64, TABLE=1): at least 0.70 FFMA
// main loop of conv2d_implicit_forward<float> (TILE_ROWS=32, TABLE=1): at least 0.57 FFMA
// main loop of conv2d_implicit_input_gradient<float> (GEMM_MMA=19): at least 0.11 HMMA
// main loop of conv2d_implicit_input_gradient<float> (GEMM_MMA=16): at least 0.07 HMMA
// main loop of conv2d_implicit_input_gradient<float> (TILE_ROWS=128, TABLE=1): at least 0.75 FFMA,
//     at most 0 divisions
// main loop of conv2d_implicit_input_gradient<float> (TILE_ROWS=64, TABLE=1): at least 0.66 FFMA
// main loop of conv2d_implicit_input_gradient<float> (TILE_ROWS=32, TABLE=1): at least 0.53 FFMA
// main loop of conv2d_implicit_weight_gradient<float> (GEMM_MMA=19): at least 0.11 HMMA
// main loop of conv2d_implicit_weight_gradient<float> (GEMM_MMA=16): at least 0.07 HMMA
// main loop of conv2d_implicit_weight_gradient<float> (TILE_ROWS=128, TABLE=1): at least 0.75 FFMA,
//     at most 0 divisions
// main loop of conv2d_implicit_weight_gradient<float> (TILE_ROWS=64, TABLE=1): at least 0.70 FFMA
// main loop of conv2d_implicit_weight_gradient<float> (TILE_ROWS=32, TABLE=1): at least 0.57 FFMA
//
// instances (TILE_ROWS=32, TABLE=1): conv2d_implicit_forward<T>, conv2d_implicit_input_gradient<T>,
//            conv2d_implicit_weight_gradient<T> for T in float, double
// instances (TILE_ROWS=64, TABLE=1): conv2d_implicit_forward<T>, conv2d_implicit_input_gradient<T>,
//            conv2d_implicit_weight_gradient<T> for T in float, double
// instances (TILE_ROWS=128, TABLE=1): conv2d_implicit_forward<float>,
//            conv2d_implicit_input_gradient<float>, conv2d_implicit_weight_gradient<float>
// instances (TILE_ROWS=128, TABLE=0): conv2d_implicit_forward<float>,
//            conv2d_implicit_input_gradient<float>, conv2d_implicit_weight_gradient<float>
// instances (TILE_ROWS=64, TABLE=0): conv2d_implicit_forward<double>,
//            conv2d_implicit_input_gradient<double>, conv2d_implicit_weight_gradient<double>
// instances (TILE_ROWS=128, TABLE=1, GEMM_MMA=19): conv2d_implicit_forward<float>,
//            conv2d_implicit_input_gradient<float>, conv2d_implicit_weight_gradient<float>
// instances (TILE_ROWS=128, TABLE=1, GEMM_MMA=16): conv2d_implicit_forward<float>,
//            conv2d_implicit_input_gradient<float>, conv2d_implicit_weight_gradient<float>
#include "implicit_gemm.cuh"

template <typename T>
__global__ void __launch_bounds__(THREADS, BLOCKS)
conv2d_implicit_forward(const T* __restrict__ w, const T* __restrict__ x, const T* __restrict__ b,
                        T* __restrict__ y, CONVOLUTION_PARAMETERS, int chunks)
{
    __shared__ TileOrigin tile;
    __shared__ int4 places[2 * STEP];
    const Convolution at = CONVOLUTION;
    const int group = blockIdx.y % G, chunk = blockIdx.y / G;
    const int rows = OG, taps = at.taps();
    if (threadIdx.x == 0)
        tile.template find<ConvolutionTile<T>>(rows, at.outputs(), N, chunk, group);
    __syncthreads();

    const SumSteps steps(1, taps, chunks, chunk);
    LeftMatrix<T> filters(w + (long long)group * rows * taps, 0, taps, rows, tile.row);
    const ImageColumns<T> pixels = {
        at, x + ((long long)tile.image * C + group * CG) * H * W, tile};
    Gathered<T, ImageColumns<T>> columns(pixels, places, steps.k);
    const T* bias = chunk == 0 ? b : nullptr;
    const auto epilogue = [=](T sum, int channel) -> T { return bias ? sum + bias[channel] : sum; };
    convolution_tile<T>(filters, columns, steps, [&](int r, int c, const T (&some)[NEIGHBOURS]) {
        write_to_images(y, some, r, c, tile, rows, O, N, epilogue);
    });
}

template <typename T>
__global__ void __launch_bounds__(THREADS, BLOCKS)
conv2d_implicit_input_gradient(const T* __restrict__ w, const T* __restrict__ gy,
                               T* __restrict__ gx, CONVOLUTION_PARAMETERS, int chunks)
{
    __shared__ TileOrigin tile;
    __shared__ int4 places[2 * STEP];
    const Convolution at = CONVOLUTION;
    const int group = blockIdx.y % G, chunk = blockIdx.y / G, rows = CG;
    if (threadIdx.x == 0) tile.template find<ConvolutionTile<T>>(rows, H * W, N, chunk, group);
    __syncthreads();

    const SumSteps steps(1, OG * KH * KW, chunks, chunk);
    TapsOfFilters<T> filters(at, w, group, tile);
    const OutputColumns<T> outputs = {
        at, gy + ((long long)tile.image * O + group * OG) * OH * OW, tile};
    Gathered<T, OutputColumns<T>> columns(outputs, places, steps.k);
    const auto epilogue = [](T sum, int) -> T { return sum; };
    convolution_tile<T>(filters, columns, steps, [&](int r, int c, const T (&some)[NEIGHBOURS]) {
        write_to_images(gx, some, r, c, tile, rows, C, N, epilogue);
    });
}

template <typename T>
__global__ void __launch_bounds__(THREADS, BLOCKS)
conv2d_implicit_weight_gradient(const T* __restrict__ gy, const T* __restrict__ x,
                                T* __restrict__ gw, CONVOLUTION_PARAMETERS, int chunks)
{
    using Tile = ConvolutionTile<T>;
    __shared__ int4 places[2 * STEP];
    const Convolution at = CONVOLUTION;
    const int group = blockIdx.y % G, chunk = blockIdx.y / G;
    const int rows = OG, taps = at.taps();
    const int tiles_down = (rows + Tile::TM - 1) / Tile::TM;
    const int row0 = blockIdx.x % tiles_down * Tile::TM, tap0 = blockIdx.x / tiles_down * Tile::TN;

    const SumSteps steps(N, at.outputs(), chunks, chunk);
    LeftMatrix<T> gradients(gy + (long long)group * rows * at.outputs(),
                            (long long)O * at.outputs(), at.outputs(), rows, row0);
    const ImageRows<T> pixels = {at, x + (long long)group * CG * H * W, tap0};
    Gathered<T, ImageRows<T>> columns(pixels, places, steps.k);
    T* to = gw + ((long long)chunk * O + group * rows) * taps;
    convolution_tile<T>(gradients, columns, steps,
                        [&](int r, int c, const T (&some)[NEIGHBOURS]) {
        if (row0 + r >= rows) return;
#pragma unroll
        for (int j = 0; j < NEIGHBOURS; ++j)
            if (tap0 + c + j < taps) to[(long long)(row0 + r) * taps + tap0 + c + j] = some[j];
    });
}
