// Exercise 12: a convolution and a pooling layer, forward and backward, with a thread for each
// element that is written.  Who writes gathers; nobody else touches that element.
//
//     N C H W    images, channels, height, width        planes = N * C
//     KH KW      a window of the convolution; it moves by S, with P zeros on either side
//     K          a window of the pooling has K x K pixels and moves by S, without zeros
//     OH OW      how many windows there are, down and across
//
// Arrays lie row after row: element [n, c, h, w] of x is x[((n * C + c) * H + h) * W + w].

// Step 1: element i of cols (N, C, KH, KW, OH, OW): the pixel of window (u, v) at place (kh, kw),
// 0 outside of the image.  i counts on over all images of x.
__device__ float column(const float* x, int i, int C, int H, int W, int KH, int KW, int S, int P,
                        int OH, int OW)
{
    // BEGIN SOLUTION 1: take i apart from its last index on, then find the pixel
    const int v = i % OW, u = i / OW % OH;
    const int kw = i / (OW * OH) % KW, kh = i / (OW * OH * KW) % KH;
    const int plane = i / (OW * OH * KW * KH);  // n * C + c
    const int h = u * S + kh - P, w = v * S + kw - P;
    if (h < 0 || h >= H || w < 0 || w >= W)
        return 0.0f;
    return x[(plane * H + h) * W + w];
    // END SOLUTION
}

// Given: a thread for each element of cols.
__global__ void im2col(const float* x, float* cols, int N, int C, int H, int W, int KH, int KW,
                       int S, int P, int OH, int OW)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N * C * KH * KW * OH * OW)
        cols[i] = column(x, i, C, H, W, KH, KW, S, P, OH, OW);
}

// Step 2: back again: each pixel of image (N, C, H, W) becomes the sum of the elements of cols that
// were copied from it; 0 if there are none.  At least as many threads as pixels.
__global__ void col2im(const float* cols, float* image, int N, int C, int H, int W, int KH, int KW,
                       int S, int P, int OH, int OW)
{
    // BEGIN SOLUTION 2: a thread owns a pixel; which window has it at place (kh, kw)?
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= N * C * H * W)
        return;
    const int w = i % W, h = i / W % H, plane = i / (W * H);
    float sum = 0.0f;
    for (int kh = 0; kh < KH; ++kh)
        for (int kw = 0; kw < KW; ++kw) {
            const int down = h + P - kh, right = w + P - kw;
            if (down < 0 || right < 0 || down % S != 0 || right % S != 0)
                continue;
            const int u = down / S, v = right / S;
            if (u < OH && v < OW)
                sum += cols[(((plane * KH + kh) * KW + kw) * OH + u) * OW + v];
        }
    image[i] = sum;
    // END SOLUTION
}

// Step 3: of each window of x (planes, H, W) the largest pixel, and where it lies in its plane,
// h * W + w: the first one, row by row, if several are as large.  y and argmax (planes, OH, OW).
// At least as many threads as windows.
__global__ void pool_forward(const float* x, float* y, int* argmax, int planes, int H, int W, int K,
                             int S, int OH, int OW)
{
    // BEGIN SOLUTION 3: a thread owns a window; its first pixel leads at first
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= planes * OH * OW)
        return;
    const int v = i % OW, u = i / OW % OH, plane = i / (OW * OH);
    const float* image = x + plane * H * W;
    int where = u * S * W + v * S;
    float best = image[where];
    for (int h = u * S; h < u * S + K; ++h)
        for (int w = v * S; w < v * S + K; ++w)
            if (image[h * W + w] > best) {
                where = h * W + w;
                best = image[where];
            }
    y[i] = best;
    argmax[i] = where;
    // END SOLUTION
}

// Step 4: gx (planes, H, W): for each pixel the sum of gy over the windows whose largest pixel it
// is, 0 if it is none's; windows may overlap.  At least as many threads as pixels.
__global__ void pool_backward(const float* gy, const int* argmax, float* gx, int planes, int H,
                              int W, int K, int S, int OH, int OW)
{
    // BEGIN SOLUTION 4: a thread owns a pixel, looks at the windows over it, and asks who has won
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= planes * H * W)
        return;
    const int w = i % W, h = i / W % H, plane = i / (W * H);
    float sum = 0.0f;
    for (int kh = 0; kh < K; ++kh)
        for (int kw = 0; kw < K; ++kw) {
            const int down = h - kh, right = w - kw;
            if (down < 0 || right < 0 || down % S != 0 || right % S != 0)
                continue;
            const int u = down / S, v = right / S, window = (plane * OH + u) * OW + v;
            if (u < OH && v < OW && argmax[window] == h * W + w)
                sum += gy[window];
        }
    gx[i] = sum;
    // END SOLUTION
}

// Step 5: the layer in one launch: y[n] = weight @ cols[n] + b, block n for image n, with any number
// of threads.  weight (D, C*KH*KW), cols[n] (C*KH*KW, OH*OW), b (D), y[n] (D, OH*OW).  Afterwards
// cols holds the columns of all images.
__global__ void conv(const float* x, const float* weight, const float* b, float* cols, float* y,
                     int C, int H, int W, int D, int KH, int KW, int S, int P, int OH, int OW)
{
    // BEGIN SOLUTION 5: first the columns of this image, all threads together; then the product
    const int n = blockIdx.x, taps = C * KH * KW, windows = OH * OW;
    const float* image = x + n * C * H * W;
    float* mine = cols + n * taps * windows;
    for (int i = threadIdx.x; i < taps * windows; i += blockDim.x)
        mine[i] = column(image, i, C, H, W, KH, KW, S, P, OH, OW);
    __syncthreads();
    for (int i = threadIdx.x; i < D * windows; i += blockDim.x) {
        const int d = i / windows, window = i % windows;
        float sum = b[d];
        for (int t = 0; t < taps; ++t)
            sum += weight[d * taps + t] * mine[t * windows + window];
        y[n * D * windows + i] = sum;
    }
    // END SOLUTION
}
