// Exercise 13: fusion.  What one launch writes and the next one reads goes to memory and back: one
// launch that does both keeps it in a register.  Every kernel has at least as many threads as its
// result has elements; the results are those of the separate launches, to the bit.

// The size of a filter, K x K, known when the file is compiled: so an array of K + 1 numbers can lie
// in registers.  A launch may say -DK=5; this is what holds where it says nothing.
#ifndef K
#define K 3
#endif

// Step 1: y = relu(x + b).  x and y (N, C, P), P pixels in each channel; b (C).
__global__ void bias_relu(const float* x, const float* b, float* y, int N, int C, int P)
{
    // BEGIN SOLUTION 1: of which channel is this element?
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= N * C * P)
        return;
    const float z = x[i] + b[i / P % C];
    y[i] = z > 0.0f ? z : 0.0f;
    // END SOLUTION
}

// Step 2: the gradient gy (N, OUT) goes back through a linear layer, w (OUT, IN), and through the
// ReLU before it, whose result was h (N, IN):
//
//     gx[n, j] = sum over k of gy[n, k] * w[k, j]   where h[n, j] is above 0, else 0
__global__ void delta(const float* gy, const float* w, const float* h, float* gx, int N, int OUT,
                      int IN)
{
    // BEGIN SOLUTION 2: a product, and one more look before it is written
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= N * IN)
        return;
    const int n = i / IN, j = i % IN;
    float sum = 0.0f;
    for (int k = 0; k < OUT; ++k)
        sum += gy[n * OUT + k] * w[k * IN + j];
    gx[i] = h[i] > 0.0f ? sum : 0.0f;
    // END SOLUTION
}

// Step 3: a convolution, its bias, ReLU, and the largest of each 2 x 2 outputs.  x (N, C, H, W),
// w (D, C, K, K), b (D), no padding; y and argmax (N, D, PH, PW).  A thread makes one pooled output
// (u, v), from the outputs (2u, 2v), (2u, 2v + 1), (2u + 1, 2v), (2u + 1, 2v + 1) of the convolution.
// argmax is 0, 1, 2 or 3: the first of these in which ReLU gives the largest number.
__global__ void conv_relu_pool(const float* x, const float* w, const float* b, float* y, int* argmax,
                               int N, int C, int H, int W, int D, int PH, int PW)
{
    // BEGIN SOLUTION 3: for each channel (K + 1) x (K + 1) pixels come into registers, then 4 sums
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= N * D * PH * PW)
        return;
    const int v = i % PW, u = i / PW % PH, d = i / (PW * PH) % D, n = i / (PW * PH * D);
    float sum[4] = {};
    for (int c = 0; c < C; ++c) {
        float pixel[K + 1][K + 1];
        for (int r = 0; r <= K; ++r)
            for (int s = 0; s <= K; ++s)
                pixel[r][s] = x[((n * C + c) * H + 2 * u + r) * W + 2 * v + s];
        for (int r = 0; r < K; ++r)
            for (int s = 0; s < K; ++s) {
                const float weight = w[((d * C + c) * K + r) * K + s];
                for (int q = 0; q < 4; ++q)
                    sum[q] += weight * pixel[q / 2 + r][q % 2 + s];
            }
    }
    float best = -1.0f;  // below whatever ReLU gives
    int where = 0;
    for (int q = 0; q < 4; ++q) {
        const float z = sum[q] + b[d];
        const float a = z > 0.0f ? z : 0.0f;
        if (a > best) {
            best = a;
            where = q;
        }
    }
    y[i] = best;
    argmax[i] = where;
    // END SOLUTION
}

// Step 4: how many bytes move between global memory and the multiprocessors, in sectors of 32 bytes,
// as `delta` goes back through a layer with IN a multiple of 32.  fused: one launch.  Otherwise two:
// the first writes the product to gx; the second reads gx and h, and writes gx.
__device__ long long predict_bytes(bool fused, int N, int OUT, int IN)
{
    // BEGIN SOLUTION 4: count the sectors of one warp, 32 neighbours in a row of gx
    const long long warps = (long long)N * IN / 32;
    long long sectors = OUT * (1 + 4);  // for each k one number of gy, 32 of w
    sectors += 4 + 4;  // h is read, gx is written
    if (!fused)
        sectors += 4 + 4;  // gx is written and read in between
    return 32 * warps * sectors;
    // END SOLUTION
}
