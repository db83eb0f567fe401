"""What goes wrong in exercise 11; of two that behave alike the first one is named."""

from tinygraph_course.content.exercise import Mistake
from tinygraph_course.exercises.gemm.mistakes_in_registers import IN_REGISTERS

# Step 1
_ROW = "    const int row = blockIdx.y * TILE + threadIdx.y;\n"
_COLUMN = "    const int column = blockIdx.x * TILE + threadIdx.x;\n"
_LEAVE = "    if (row >= M || column >= N)\n        return;\n"
_BEGIN = "    float sum = 0.0f;\n    for (int k = 0; k < K; ++k)\n"
_ADD = "        sum += A[row * K + k] * B[k * N + column];\n"
_WRITE = "    C[row * N + column] = sum;\n"
# Step 2
_PLACE = "    const int row = row0 + y, column = column0 + x;\n"
_KEEP = "    tile[y][x] = row < rows && column < columns ? matrix[row * columns + column] : 0.0f;\n"
_INSIDE = "row < rows && column < columns"
# Step 3
_LOAD_A = "        load_tile(A, a, M, K, row0, k0);\n"
_LOAD_B = "        load_tile(B, b, K, N, k0, column0);\n"
_BARRIER = "        __syncthreads();\n"
_TILES = "    for (int k0 = 0; k0 < K; k0 += TILE) {\n" + _LOAD_A
_LOOP = "        for (int k = 0; k < TILE; ++k)\n            sum += a[y][k] * b[k][x];\n"
_SUM = "    float sum = 0.0f;\n    for (int k0 = 0;"
_WRITE_TILE = (
    "    if (row0 + y < M && column0 + x < N)\n        C[(row0 + y) * N + column0 + x] = sum;\n"
)

MISTAKES = [
    Mistake(
        1,
        "no-guard",
        "Threads beyond the edge of C read and write there. Those alone have an element for which\n"
        "both hold, row < M and column < N.",
        [(_LEAVE, "")],
    ),
    Mistake(
        1,
        "rows-guarded-alone",
        "Threads right of C pass your guard: behind the end of a row lies the next row, and they\n"
        "write into it.",
        [(_LEAVE, "    if (row >= M)\n        return;\n")],
    ),
    Mistake(
        1,
        "x-and-y-exchanged",
        "Neighbours in a warp go down a column of C: each of them fetches from another row of A\n"
        "and writes to another row of C. x counts along a row.",
        [
            (_ROW, _ROW.replace("threadIdx.y", "threadIdx.x")),
            (_COLUMN, _COLUMN.replace("threadIdx.x", "threadIdx.y")),
        ],
    ),
    Mistake(
        1,
        "grid-turned",
        "You take the row from x and the column from y. gridDim.y blocks cover the rows: with\n"
        "another number of rows than of columns a part of C is left out.",
        [
            (_ROW, "    const int row = blockIdx.x * TILE + threadIdx.x;\n"),
            (_COLUMN, "    const int column = blockIdx.y * TILE + threadIdx.y;\n"),
        ],
    ),
    Mistake(
        1,
        "every-block-the-same",
        "Every block makes the first tile of C: threadIdx counts within its block alone.",
        [
            (_ROW, "    const int row = threadIdx.y;\n"),
            (_COLUMN, "    const int column = threadIdx.x;\n"),
        ],
    ),
    Mistake(
        1,
        "row-of-a-is-n-long",
        "You go to a row of A by steps of N, or of M. A row of A has K elements.",
        [(_ADD, _ADD.replace("row * K", "row * N"))],
    ),
    Mistake(
        1,
        "row-of-b-is-k-long",
        "You go to a row of B by steps of K. A row of B has N elements.",
        [(_ADD, _ADD.replace("k * N", "k * K"))],
    ),
    Mistake(
        1,
        "b-by-rows",
        "You run along a row of B. The sum runs down a column: B[k, column] lies at\n"
        "k * N + column.",
        [(_ADD, _ADD.replace("B[k * N + column]", "B[column * K + k]"))],
    ),
    Mistake(
        1,
        "row-of-c-is-m-long",
        "You go to a row of C by steps of M, its number of rows. A row of C has N elements.",
        [(_WRITE, _WRITE.replace("row * N", "row * M"))],
    ),
    Mistake(
        1,
        "sum-not-zeroed",
        "Your sum begins with whatever was in the register. A variable has no value\n"
        "until you give it one: 0.",
        [(_BEGIN, _BEGIN.replace("float sum = 0.0f;", "float sum;"))],
    ),
    Mistake(
        1,
        "last-product-alone",
        "Each product takes the place of the one before: add it to the sum.",
        [(_ADD, _ADD.replace("+=", "="))],
    ),
    Mistake(
        1,
        "added-to-what-was-there",
        "You add to what lies in C, and nobody has set it to 0. Sum up in a variable, and assign\n"
        "it once.",
        [(_WRITE, _WRITE.replace(" = sum", " += sum"))],
    ),
    Mistake(
        1,
        "k-beyond-the-end",
        "k goes as far as K. The last one is K - 1: k < K.",
        [(_BEGIN, _BEGIN.replace("k < K", "k <= K"))],
    ),
    Mistake(
        2,
        "edge-not-zeroed",
        "Beyond the edge you leave the tile as it was: what lies there goes into the sums. Write\n"
        "0, which adds nothing.",
        [(_KEEP, f"    if ({_INSIDE})\n        tile[y][x] = matrix[row * columns + column];\n")],
    ),
    Mistake(
        2,
        "tile-without-guard",
        "Threads beyond the edge of the matrix read what does not belong to it.",
        [(_KEEP, "    tile[y][x] = matrix[row * columns + column];\n")],
    ),
    Mistake(
        2,
        "rows-of-the-tile-alone",
        "Right of the matrix you read on: behind the end of a row lies the next row. There is a\n"
        "0 wherever row or column is outside.",
        [(_INSIDE, "row < rows")],
    ),
    Mistake(
        2,
        "columns-of-the-tile-alone",
        "Below the matrix you read on. There is a 0 wherever row or column is outside.",
        [(_INSIDE, "column < columns")],
    ),
    Mistake(
        2,
        "edge-repeated",
        "Beyond the edge you bring the last row or column again. Bring 0: the sum shall not\n"
        "change.",
        [
            (
                _KEEP,
                "    tile[y][x] = matrix[(row < rows ? row : rows - 1) * columns +\n"
                "                        (column < columns ? column : columns - 1)];\n",
            )
        ],
    ),
    Mistake(
        2,
        "tile-x-and-y-exchanged",
        "Neighbours in a warp fetch from a column, whose elements lie a whole row apart: a warp\n"
        "moves 16 sectors in the place of 4. Let x count along the row.",
        [
            (
                "    const int x = threadIdx.x, y = threadIdx.y;\n" + _PLACE,
                "    const int x = threadIdx.y, y = threadIdx.x;\n" + _PLACE,
            )
        ],
    ),
    Mistake(
        2,
        "tile-turned",
        "The tile is turned: its rows are columns of the matrix. tile[y][x] gets row row0 + y and\n"
        "column column0 + x.",
        [(_KEEP, _KEEP.replace("tile[y][x]", "tile[x][y]"))],
    ),
    Mistake(
        2,
        "always-the-first-tile",
        "You load the first tile of the matrix, wherever the part begins: row0 and column0 are\n"
        "missing.",
        [(_PLACE, "    const int row = y, column = x;\n")],
    ),
    Mistake(
        2,
        "row0-and-column0-exchanged",
        "row0 and column0 are exchanged: row0 counts downwards, as y does.",
        [(_PLACE, "    const int row = column0 + y, column = row0 + x;\n")],
    ),
    Mistake(
        2,
        "rows-long",
        "You go to a row by steps of `rows`, or of TILE. A row of the matrix has `columns`\n"
        "elements.",
        [(_KEEP, _KEEP.replace("row * columns", "row * rows"))],
    ),
    Mistake(
        3,
        "no-barrier-before-the-product",
        "You multiply right after loading: nothing says that the others have brought their\n"
        "elements of the tiles. Between loading and multiplying there is a barrier.",
        [(_LOAD_B + _BARRIER, _LOAD_B)],
    ),
    Mistake(
        3,
        "no-barrier-after-the-product",
        "The next tiles are loaded while other threads still multiply: they overwrite numbers\n"
        "that are needed. After multiplying there is a barrier, too.",
        [(_LOOP + _BARRIER, _LOOP)],
    ),
    Mistake(
        3,
        "no-barrier",
        "There is no barrier: a thread multiplies what others have not loaded yet, and overwrites\n"
        "what others still need.",
        [(_LOAD_B + _BARRIER, _LOAD_B), (_LOOP + _BARRIER, _LOOP)],
    ),
    Mistake(
        3,
        "return-before-a-barrier",
        "Threads outside of C leave before a barrier, and the others wait for them there. They\n"
        "are needed for loading, too: they stay, and do not write.",
        [(_SUM, f"    if (row0 + y >= M || column0 + x >= N)\n        return;\n{_SUM}")],
    ),
    Mistake(
        3,
        "tail-lost",
        "K / TILE tiles are too few where TILE does not divide K: the last products are lost.\n"
        "There are as many tiles as begin below K.",
        [(_TILES, _TILES.replace("k0 < K", "k0 < K / TILE * TILE"))],
    ),
    Mistake(
        3,
        "sum-of-a-tile-begins-anew",
        "Your sum begins anew with each tile: what is left is the part of the last one.",
        [(_LOOP, "        sum = 0.0f;\n" + _LOOP)],
    ),
    Mistake(
        3,
        "tile-sum-not-zeroed",
        "Your sum begins with whatever was in the register: give it the value 0 before the loop.",
        [(_SUM, _SUM.replace("float sum = 0.0f;", "float sum;"))],
    ),
    Mistake(
        3,
        "b-by-columns",
        "You keep the tile of B turned, b[x][k]: 16 threads that read a column meet in the same\n"
        "banks of shared memory and take turns. b[k][x] lies side by side.",
        [
            (
                _LOAD_B,
                "        b[x][y] = k0 + y < K && column0 + x < N\n"
                "                      ? B[(k0 + y) * N + column0 + x] : 0.0f;\n",
            ),
            ("a[y][k] * b[k][x]", "a[y][k] * b[x][k]"),
        ],
    ),
    Mistake(
        3,
        "b-read-turned",
        "You read b[x][k]: that is the product with the turned tile. The sum runs down a column\n"
        "of b: b[k][x].",
        [("a[y][k] * b[k][x]", "a[y][k] * b[x][k]")],
    ),
    Mistake(
        3,
        "a-read-turned",
        "You read a[k][y]: that is the product with the turned tile. The sum runs along a row of\n"
        "a: a[y][k].",
        [("a[y][k] * b[k][x]", "a[k][y] * b[k][x]")],
    ),
    Mistake(
        3,
        "a-does-not-move",
        "You load the first tile of A again and again: it goes along with k0.",
        [(_LOAD_A, _LOAD_A.replace("k0", "0"))],
    ),
    Mistake(
        3,
        "b-does-not-move",
        "You load the first tile of B again and again: it goes down with k0.",
        [(_LOAD_B, _LOAD_B.replace("k0", "0"))],
    ),
    Mistake(
        3,
        "b-goes-to-the-right",
        "Your tile of B goes to the right with k0. It goes down: its row is k0, its column stays\n"
        "column0.",
        [(_LOAD_B, _LOAD_B.replace("k0, column0", "column0, k0"))],
    ),
    Mistake(
        3,
        "tile-left-by-k",
        "Within a tile k counts to TILE, not to K: you read beyond the tile.",
        [(_LOOP, _LOOP.replace("k < TILE", "k < K"))],
    ),
    Mistake(
        3,
        "tile-written-without-guard",
        "Threads outside of C write there. They load and wait with the others, but write nothing.",
        [(_WRITE_TILE, "    C[(row0 + y) * N + column0 + x] = sum;\n")],
    ),
    Mistake(
        3,
        "barrier-for-every-k",
        "Your barrier stands in the loop over k: the block waits once for each product. Once for\n"
        "each tile is enough.",
        [
            (
                _LOOP + _BARRIER,
                "        for (int k = 0; k < TILE; ++k) {\n            sum += a[y][k] * b[k][x];\n"
                "            __syncthreads();\n        }\n",
            )
        ],
    ),
    *IN_REGISTERS,
]
