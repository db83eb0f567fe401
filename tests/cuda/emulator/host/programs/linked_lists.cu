// A list for each thread, on the heap of the device: one launch builds them, another takes them apart.
#include <cstdio>
#include <cstdlib>

struct Node {
    int value;
    Node *next;
    __device__ Node(int value, Node *next) : value(value), next(next) {}
};

__device__ Node *lists[64];

__global__ void build(int n)
{
    int *values = (int *)malloc(n * sizeof(int));
    for (int i = 0; i < n; i++) values[i] = threadIdx.x + i;
    lists[threadIdx.x] = nullptr;
    for (int i = 0; i < n; i++) lists[threadIdx.x] = new Node(values[i], lists[threadIdx.x]);
    free(values);
}

__global__ void sum(int *out)
{
    out[threadIdx.x] = 0;
    for (Node *node = lists[threadIdx.x], *next; node; node = next) {
        out[threadIdx.x] += node->value;
        next = node->next;
        delete node;
    }
}

__global__ void mistake(int which, int *out)
{
    int *p = (int *)malloc(10 * sizeof(int));
    for (int i = 0; i < 10; i++) p[i] = i;
    if (which == 1) p[10] = 3;
    if (which == 2) p[-1] = 3;
    if (which != 3) free(p);
    if (which == 4) out[0] = p[3];
    if (which == 5) free(p);
    if (which == 6) out[0] = (new int[4])[2];
    if (which == 7) delete out;
}

int main(int argc, char **argv)
{
    const int n = 5;
    int *d_out, *out = (int *)malloc(64 * sizeof(int)), wrong = 0;
    cudaMalloc(&d_out, 64 * sizeof(int));
    for (int round = 0; round < 3; round++) {
        build<<<1, 64>>>(n);
        sum<<<1, 64>>>(d_out);
        cudaMemcpy(out, d_out, 64 * sizeof(int), cudaMemcpyDeviceToHost);
        for (int i = 0; i < 64; i++) wrong += out[i] != n * i + n * (n - 1) / 2;
    }
    mistake<<<1, 1>>>(argc > 1 ? atoi(argv[1]) : 0, d_out);
    printf("%d wrong, %s\n", wrong, cudaGetErrorString(cudaDeviceSynchronize()));
    delete new int;
    free(out);
    cudaFree(d_out);
}
