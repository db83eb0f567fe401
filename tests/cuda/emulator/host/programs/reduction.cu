// A sum by cooperative groups: tiles of a warp, then one atomic for each tile; and the same with one
// launch whose blocks wait for each other.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cstdio>

namespace cg = cooperative_groups;

__global__ void sum(const int *x, int *total, int n)
{
    cg::thread_block block = cg::this_thread_block();
    cg::thread_block_tile<32> tile = cg::tiled_partition<32>(block);
    int part = 0;
    for (int i = blockIdx.x * block.size() + block.thread_rank(); i < n; i += gridDim.x * block.size())
        part += x[i];
    part = cg::reduce(tile, part, cg::plus<int>());
    if (tile.thread_rank() == 0) atomicAdd(total, part);
}

__global__ void sum_together(const int *x, int *parts, int n)
{
    __shared__ int of_warp[32];
    cg::grid_group grid = cg::this_grid();
    cg::thread_block block = cg::this_thread_block();
    auto tile = cg::tiled_partition<32>(block);
    int part = 0;
    for (int i = grid.thread_rank(); i < n; i += grid.size()) part += x[i];
    for (int delta = tile.size() / 2; delta > 0; delta /= 2) part += tile.shfl_down(part, delta);
    if (tile.thread_rank() == 0) of_warp[tile.meta_group_rank()] = part;
    cg::sync(block);
    if (block.thread_rank() == 0) {
        int of_block = 0;
        for (int i = 0; i < tile.meta_group_size(); i++) of_block += of_warp[i];
        parts[blockIdx.x] = of_block;
    }
    grid.sync();
    if (grid.thread_rank() == 0)
        for (int i = 1; i < gridDim.x; i++) parts[0] += parts[i];
}

int main()
{
    int n = 10000, *x, *total, *parts, blocks = 0;
    cudaMallocManaged(&x, n * sizeof(int));
    cudaMallocManaged(&total, sizeof(int));
    for (int i = 0; i < n; i++) x[i] = i % 7;
    *total = 0;
    sum<<<8, 128>>>(x, total, n);
    cudaDeviceSynchronize();
    printf("tiles: %d\n", *total);

    cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, sum_together, 128, 0);
    cudaDeviceProp device;
    cudaGetDeviceProperties(&device, 0);
    blocks = blocks * device.multiProcessorCount < 6 ? blocks * device.multiProcessorCount : 6;
    cudaMallocManaged(&parts, blocks * sizeof(int));
    void *arguments[] = {&x, &parts, &n};
    cudaError_t error = cudaLaunchCooperativeKernel((void *)sum_together, blocks, 128, arguments);
    cudaDeviceSynchronize();
    printf("together: %d, %s\n", parts[0], cudaGetErrorString(error));
    return 0;
}
