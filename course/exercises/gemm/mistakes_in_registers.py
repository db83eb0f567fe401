"""What goes wrong in steps 4 and 5 of exercise 11, where a thread makes 16 sums."""

from tinygraph_course.content.exercise import Mistake

_BARRIER = "        __syncthreads();\n"
# Step 4
_LOAD_16 = "        load_tiles(A, B, a, b, M, N, K, row0, column0, k0);\n"
_TILES_16 = "    for (int k0 = 0; k0 < K; k0 += TILE) {\n" + _LOAD_16
_SUMS_16 = "    float sum[4][4] = {};\n" + _TILES_16
_RIGHT = "const float right[4] = {b[0][k][x], b[1][k][x], b[2][k][x], b[3][k][x]};"
_LEFT = "const float left = a[i][y][k];\n"
_ADD_16 = (
    "                for (int j = 0; j < 4; ++j)\n"
    "                    sum[i][j] += left * right[j];\n"
    "            }\n"
    "        }\n"
)
_BETWEEN = _LOAD_16 + _BARRIER
_AFTER = _ADD_16 + _BARRIER
_CORNER = "    const int row0 = blockIdx.y * 4 * TILE, column0 = blockIdx.x * 4 * TILE;\n"
# Step 5
_FIRST = "    load_tiles(A, B, a[0], b[0], M, N, K, row0, column0, 0);\n"
_HEAD = "    for (int k0 = 0, now = 0; k0 < K; k0 += TILE, now = 1 - now) {\n"
_NEXT = (
    "        if (next < K)\n"
    "            load_tiles(A, B, a[1 - now], b[1 - now], M, N, K, row0, column0, next);\n"
)
_TURN = _BARRIER + "        const int next = k0 + TILE;\n"

IN_REGISTERS = [
    Mistake(
        4,
        "panels-read-too-early",
        "You multiply right after loading: nothing says that the others have brought their\n"
        "elements. Between loading and multiplying there is a barrier.",
        [(_BETWEEN, _LOAD_16)],
    ),
    Mistake(
        4,
        "panels-overwritten",
        "The next tiles are loaded while other threads still multiply. After multiplying there is\n"
        "a barrier, too.",
        [(_AFTER, _ADD_16)],
    ),
    Mistake(
        4,
        "registers-tail-lost",
        "K / TILE tiles are too few where TILE does not divide K: the last products are lost.",
        [(_TILES_16, _TILES_16.replace("k0 < K", "k0 < K / TILE * TILE"))],
    ),
    Mistake(
        4,
        "block-as-in-step-3",
        "Your blocks begin TILE apart, downwards or to the right or both, and each makes 4*TILE\n"
        "rows and columns: they overlap.",
        [(_CORNER + _SUMS_16, _CORNER.replace("4 * ", "") + _SUMS_16)],
        [
            [(_CORNER + _SUMS_16, _CORNER.replace("y * 4 *", "y *") + _SUMS_16)],
            [(_CORNER + _SUMS_16, _CORNER.replace("x * 4 *", "x *") + _SUMS_16)],
        ],
    ),
    Mistake(
        4,
        "sixteen-sums-not-zeroed",
        "Your sums begin with whatever was in the registers: give all of them the value 0.",
        [(_SUMS_16, _SUMS_16.replace(" = {};", ";"))],
    ),
    Mistake(
        4,
        "sums-turned",
        "sum[i][j] gets what belongs to sum[j][i]: i counts the tiles of A, which lie below one\n"
        "another, j those of B.",
        [(_ADD_16 + _BARRIER, _ADD_16.replace("sum[i][j]", "sum[j][i]") + _BARRIER)],
    ),
    Mistake(
        4,
        "one-tile-of-a",
        "You use the first tile of A for all four rows: its number is i.",
        [(_LEFT + _ADD_16 + _BARRIER, _LEFT.replace("a[i]", "a[0]") + _ADD_16 + _BARRIER)],
    ),
    Mistake(
        4,
        "one-tile-of-b",
        "You use the first tile of B for all four columns: its number is j.",
        [(_RIGHT, "const float right[4] = {b[0][k][x], b[0][k][x], b[0][k][x], b[0][k][x]};")],
    ),
    Mistake(
        4,
        "four-sums-alone",
        "You pair the first with the first, the second with the second: 4 products. Each of the 4\n"
        "numbers of A goes with each of the 4 of B: 16.",
        [
            (
                _ADD_16 + _BARRIER,
                _ADD_16.replace(
                    "sum[i][j] += left * right[j]", "sum[i][j] += i == j ? left * right[j] : 0"
                )
                + _BARRIER,
            )
        ],
    ),
    Mistake(
        4,
        "sixteen-reads",
        "You read b, or a, anew for every product. Read the four numbers of each into variables\n"
        "before the loops over i and j: 8 reads serve 16 multiply-adds.",
        [(_ADD_16 + _BARRIER, _ADD_16.replace("right[j]", "b[j][k][x]") + _BARRIER)],
        [
            [(_ADD_16 + _BARRIER, _ADD_16.replace("left *", "a[i][y][k] *") + _BARRIER)],
            [
                (
                    _ADD_16 + _BARRIER,
                    _ADD_16.replace("left * right[j]", "a[i][y][k] * b[j][k][x]") + _BARRIER,
                )
            ],
        ],
    ),
    Mistake(
        4,
        "registers-a-turned",
        "You read a[i][k][y]: that is the product with turned tiles of A. The sum runs along a\n"
        "row: a[i][y][k].",
        [(_LEFT + _ADD_16 + _BARRIER, _LEFT.replace("[y][k]", "[k][y]") + _ADD_16 + _BARRIER)],
    ),
    Mistake(
        5,
        "both-buffers-the-same",
        "You load into the buffer that is being multiplied: the numbers change while others read\n"
        "them. The next tiles go into the other one.",
        [(_NEXT, _NEXT.replace("1 - now", "now"))],
    ),
    Mistake(
        5,
        "no-barrier-between-tiles",
        "There is no barrier between tiles: a thread multiplies what others have not loaded yet,\n"
        "or loads into what others still multiply.",
        [(_TURN, "        const int next = k0 + TILE;\n")],
    ),
    Mistake(
        5,
        "barrier-before-the-first-tile-alone",
        "There is one barrier, before the first tile. Each tile needs one between loading it and\n"
        "multiplying it.",
        [
            (_HEAD, "    __syncthreads();\n" + _HEAD),
            (_TURN, "        const int next = k0 + TILE;\n"),
        ],
    ),
    Mistake(
        5,
        "barrier-behind-the-load",
        "Your barrier stands behind the loading: a fast thread begins to load into the buffer\n"
        "that slow ones still multiply. Wait first, then load.",
        [(_TURN + _NEXT, "        const int next = k0 + TILE;\n" + _NEXT + _BARRIER)],
    ),
    Mistake(
        5,
        "barrier-for-some-tiles",
        "Your barrier is left out for the last tile, or the first one: each tile needs one\n"
        "between loading it and multiplying it.",
        [(_TURN, "        const int next = k0 + TILE;\n        if (next < K)\n    " + _BARRIER)],
    ),
    Mistake(
        5,
        "buffers-not-exchanged",
        "You multiply the same buffer in every round: what was loaded into the other one is never\n"
        "used. Their roles change after each tile.",
        [(_HEAD, _HEAD.replace(", now = 1 - now", ""))],
    ),
    Mistake(
        5,
        "first-tile-not-loaded",
        "Nobody loads the first tiles: before the loop buffer 0 has to be filled.",
        [(_FIRST, "")],
    ),
    Mistake(
        5,
        "last-tile-not-multiplied",
        "Your loop ends with the last loading: the tiles that were loaded last are multiplied by\n"
        "nobody.",
        [(_HEAD, _HEAD.replace("k0 < K", "k0 + TILE < K"))],
    ),
    Mistake(
        5,
        "same-tile-again",
        "You load the tile that is being multiplied once more: the next one begins at k0 + TILE.",
        [(_TURN, _BARRIER + "        const int next = k0;\n")],
    ),
    Mistake(
        5,
        "two-barriers",
        "Two barriers for each tile: that is right, and no better than one buffer. One at the\n"
        "beginning says both: this buffer is full, and the other one has been read.",
        [(_TURN + _NEXT, _TURN + _NEXT + _BARRIER)],
    ),
]
