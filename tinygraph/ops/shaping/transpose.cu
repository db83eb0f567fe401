// Transpose through tiles in shared memory: where the innermost axis changes.
//
// instances: transpose_tile<Word> for Word in unsigned char, unsigned short, unsigned int,
//            unsigned long long
// operations of transpose_tile: 0
//
// Bits are moved, not numbers: one instance for each size of an element serves every dtype.
//
// Every permutation that moves the innermost axis is a stack of matrix transposes:
//
//     rows       the innermost axis of y; its neighbours lie row_step apart in x
//     columns    the innermost axis of x; its neighbours lie column_step apart in y
//     batch      all other axes, merged, with their steps in x and in y
//
// Copied element by element, one of the two sides would touch one element of each sector of memory.
// Here a block owns a tile of 32 rows and 32 columns: it reads along the columns, neighbours in x,
// and writes along the rows, neighbours in y, both coalesced; in between lies shared memory.  The
// tile has 33 columns there, so that the 32 elements of a column lie in 32 banks.
//
// Grid (min(tiles, 1024)): a grid-stride loop over tiles.  Block (256): 32 lanes, 8 rows at a time.
// Where rows or columns are fewer than 8, most of a tile would be empty; the host then takes
// strided_read, whose requests the cache joins again.
// Deterministic: no two threads write one element.

#include "strided.cuh"

constexpr int TILE = 32;

// x Word in, y (of the same size) Word out; tiles = batch * ceil(rows / 32) * ceil(columns / 32).
// size_a and step_a are those of the batch axes in x, y_step_a their steps in y.
// numpy: y = x.transpose(axes)
template <typename Word>
__global__ void __launch_bounds__(THREADS)
transpose_tile(const Word* __restrict__ x, Word* __restrict__ y, long long tiles, long long rows,
               long long columns, long long row_step, long long column_step, STRIDED_PARAMETERS,
               SIX_OF(long long, y_step))
{
    __shared__ Word tile[TILE][TILE + 1];
    const StridedAxes batch = STRIDED_AXES;
    const long long y_step[] = {SIX(y_step)};
    const long long row_tiles = (rows + TILE - 1) / TILE;
    const long long column_tiles = (columns + TILE - 1) / TILE;
    const int lane = threadIdx.x % TILE, warp = threadIdx.x / TILE;

    for (long long t = blockIdx.x; t < tiles; t += gridDim.x) {
        long long rest = t;
        const long long column = cut_off(rest, column_tiles) * TILE;
        const long long row = cut_off(rest, row_tiles) * TILE;
        long long x_at = row * row_step + column, y_at = column * column_step + row;
        each_axis(batch, rest, [&](int axis, long long index) {
            x_at += index * batch.step[axis];
            y_at += index * y_step[axis];
        });

        for (int r = warp; r < TILE && row + r < rows; r += THREADS / TILE) {
            if (column + lane < columns)
                tile[r][lane] = x[x_at + r * row_step + lane];
        }
        __syncthreads();
        for (int c = warp; c < TILE && column + c < columns; c += THREADS / TILE) {
            if (row + lane < rows)
                y[y_at + c * column_step + lane] = tile[lane][c];
        }
        __syncthreads();  // the next turn overwrites the tile
    }
}
