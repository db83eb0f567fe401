// why: parents are read and changed by atomics only; the smaller root always wins
// launch: --kernel unite --grid 2 --block 32 --arg "parent=arange(128)"
// launch: --arg "a=arange(64)" --arg offset=64
// equals: parent = np.concatenate([np.arange(64), np.arange(64)])
__device__ int root(int* parent, int v) {
    int p = atomicAdd(&parent[v], 0);
    while (p != v) {
        v = p;
        p = atomicAdd(&parent[v], 0);
    }
    return v;
}

__global__ void unite(int* parent, const int* a, int offset) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int u = root(parent, a[i]), v = root(parent, a[i] + offset);
    while (u != v) {
        if (u > v) { int t = u; u = v; v = t; }
        int old = atomicCAS(&parent[v], v, u);
        if (old == v) break;
        v = root(parent, old);
        u = root(parent, u);
    }
}
