// Interpolation, forward and backward: nearest pixels, or four around a place.
//
// operations of interpolate_forward: (10 if nearest else 23) * y
// operations of interpolate_backward: 25 * gx + (20 if nearest else 55) * gy  # and to find the readers
//
//     planes = N * C      H W image      OH OW output      nearest   1: one pixel for each output
//     by over before after     as in ops/windows/interpolate.py, of rows (_h) and columns (_w)
//
// Forward, a thread owns an output; backward, a thread owns a pixel and gathers what the outputs
// send that read it: no two threads write one element, so that no atomics are needed.
// Grid (min(ceil(elements / 256), 1024)), block (256): a grid-stride loop over the output.
// Memory: neighbouring threads write neighbouring elements, and read neighbours, or the same ones.
// Places are computed in double: in float an output could read another pixel than in numpy.
// Deterministic: each sum is taken row by row, as long_sum.cuh has it.

#include "long_sum.cuh"

// What an output reads on one axis: a pixel, and the next one with the share t.
template <typename T>
struct Place {
    int pixel, next;
    T t;

    __device__ __forceinline__ Place(int u, int size, double by, double over, double before,
                                     double after, int nearest)
    {
        const double at = max((u + before) * by / over - after, 0.0);
        pixel = static_cast<int>(min(floor(at), size - 1.0));
        next = nearest ? pixel : min(pixel + 1, size - 1);
        t = nearest ? T(0) : static_cast<T>(at - pixel);
    }

    __device__ __forceinline__ T share_of(int h) const
    {
        return (pixel == h ? T(1) - t : T(0)) + (next == h ? t : T(0));
    }
};

// The outputs of one axis that may read pixel h lie from the first of these to before the second;
// one more behind, for the division rounds.  Where `by` is 0 there is one pixel, and all outputs
// read it: -1 and 1 divided by 0 say so.
__device__ __forceinline__ int first_reader(int h, double by, double over, double before,
                                            double after)
{
    return static_cast<int>(max(floor((h - 1 + after) * over / by - before), 0.0));
}

__device__ __forceinline__ int end_of_readers(int h, int out, double by, double over,
                                              double before, double after)
{
    return static_cast<int>(min(ceil((h + 1 + after) * over / by - before) + 1, 1.0 * out));
}

// x (planes, H, W) T in, y (planes, OH, OW) T out.  n = planes * OH * OW.
// numpy: rows = (1 - t) * x[:, a] + t * x[:, a + 1], and the same of their columns
template <typename T>
__global__ void __launch_bounds__(THREADS, 2)
interpolate_forward(const T* __restrict__ x, T* __restrict__ y, long long n, int H, int W, int OH,
                    int OW, int nearest, double by_h, double over_h, double by_w, double over_w,
                    double before, double after)
{
    for (long long i = first_element(); i < n; i += element_stride()) {
        const long long row = i / OW;  // plane * OH + u
        const int u = row % OH, v = i - row * OW;
        const Place<T> high(u, H, by_h, over_h, before, after, nearest);
        const Place<T> wide(v, W, by_w, over_w, before, after, nearest);
        const T* above = x + (row / OH * H + high.pixel) * W;
        if (nearest) {
            y[i] = above[wide.pixel];
            continue;
        }
        const T* below = x + (row / OH * H + high.next) * W;
        const T left = (1 - high.t) * above[wide.pixel] + high.t * below[wide.pixel];
        const T right = (1 - high.t) * above[wide.next] + high.t * below[wide.next];
        y[i] = (1 - wide.t) * left + wide.t * right;
    }
}

// gy (planes, OH, OW) T in, gx (planes, H, W) T out.  n = planes * H * W.
// numpy: np.add.at(gx, the pixels that outputs read, their shares * gy)
template <typename T>
__global__ void __launch_bounds__(THREADS, 2)
interpolate_backward(const T* __restrict__ gy, T* __restrict__ gx, long long n, int H, int W,
                     int OH, int OW, int nearest, double by_h, double over_h, double by_w,
                     double over_w, double before, double after)
{
    for (long long i = first_element(); i < n; i += element_stride()) {
        const long long row = i / W;  // plane * H + h
        const int h = row % H, w = i - row * W;
        const T* upstream = gy + row / H * OH * OW;
        const int u_end = end_of_readers(h, OH, by_h, over_h, before, after);
        const int v_begin = first_reader(w, by_w, over_w, before, after);
        const int v_end = end_of_readers(w, OW, by_w, over_w, before, after);
        LongSum<T> sum;
        for (int u = first_reader(h, by_h, over_h, before, after); u < u_end; ++u) {
            const Place<T> high(u, H, by_h, over_h, before, after, nearest);
            if (high.pixel != h && high.next != h)
                continue;
            LongSum<T> of_row;
            for (int v = v_begin; v < v_end; ++v) {
                const Place<T> wide(v, W, by_w, over_w, before, after, nearest);
                if (wide.pixel == w || wide.next == w)
                    of_row.add(wide.share_of(w) * upstream[static_cast<long long>(u) * OW + v]);
            }
            sum.add(high.share_of(h) * of_row.value());
        }
        gx[i] = sum.value();
    }
}
