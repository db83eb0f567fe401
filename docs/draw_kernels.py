"""Draw the pictures of the pages about kernels: python docs/draw_kernels.py

The picture of a block is no sketch: it runs a block on the emulator and draws who ran when.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tinygraph.cuda import Kernel

IMAGES = Path(__file__).parent / "images"

INK, FAINT, PAPER, RULE = "#1b1f24", "#5b6470", "#ffffff", "#c4ccd6"
BLUE, ORANGE, GREEN, RED = "#2f66c4", "#b96a10", "#2c8a4b", "#c03030"
PALE_BLUE, PALE_ORANGE, PALE_GREEN = "#d9e8ff", "#ffe5c2", "#d5f2dc"
FONT = "ui-sans-serif, system-ui, 'DejaVu Sans', Helvetica, Arial, sans-serif"

# Every thread notes its number three times.  By the rules of CUDA `(*next)++` is a race; the fibers
# of one block take turns, so that here it counts them.
ORDER = """
__global__ void order(int* next, short* ran) {
    ran[(*next)++] = threadIdx.x;
    __syncthreads();
    ran[(*next)++] = threadIdx.x;
    __syncwarp();
    ran[(*next)++] = threadIdx.x;
}
"""
THREADS, PARTS = 64, 3


class Picture:
    """An SVG with a ground of its own, so that it reads on light and on dark pages."""

    def __init__(self, width: int, height: int, title: str) -> None:
        self.lines = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" font-family="{FONT}" font-size="14">',
            f"<title>{title}</title>",
            f'<rect width="{width}" height="{height}" rx="8" fill="{PAPER}"/>',
        ]

    def rect(
        self, x: float, y: float, w: float, h: float, fill: str, stroke: str = "none", rx: float = 0
    ) -> None:
        self.lines.append(
            f'<rect x="{x:g}" y="{y:g}" width="{w:g}" height="{h:g}" rx="{rx:g}" fill="{fill}" '
            f'stroke="{stroke}"/>'
        )

    def line(self, *points: float, colour: str = FAINT, dash: str = "") -> None:
        pairs = " ".join(f"{x:g},{y:g}" for x, y in zip(points[::2], points[1::2], strict=True))
        dashed = f' stroke-dasharray="{dash}"' if dash else ""
        self.lines.append(
            f'<polyline points="{pairs}" fill="none" stroke="{colour}" stroke-width="1.4"{dashed}/>'
        )

    def arrow(self, *points: float) -> None:
        """A line with a head at its end, which comes along one of the axes."""
        self.line(*points)
        x0, y0, x, y = points[-4:]
        dx, dy = (x > x0) - (x < x0), (y > y0) - (y < y0)
        self.lines.append(
            f'<path d="M{x:g} {y:g} L{x - 8 * dx - 4 * dy:g} {y - 8 * dy - 4 * dx:g} '
            f'L{x - 8 * dx + 4 * dy:g} {y - 8 * dy + 4 * dx:g} z" fill="{FAINT}"/>'
        )

    def text(
        self,
        x: float,
        y: float,
        words: str,
        anchor: str = "middle",
        colour: str = INK,
        bold: bool = False,
        size: int = 14,
    ) -> None:
        weight = ' font-weight="bold"' if bold else ""
        self.lines.append(
            f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" fill="{colour}" '
            f'font-size="{size}"{weight}>{words}</text>'
        )

    def box(
        self, x: float, y: float, w: float, words: str, under: str, fill: str, edge: str
    ) -> None:
        """A state: its name, and what it means."""
        self.rect(x, y, w, 46, fill, edge, 8)
        self.text(x + w / 2, y + 20, words, bold=True)
        self.text(x + w / 2, y + 37, under, size=12)

    def write(self, path: Path) -> Path:
        path.write_text("\n".join([*self.lines, "</svg>", ""]), encoding="utf-8")
        return path


def turns() -> np.ndarray:
    """(192,) the numbers of the threads of one block, in the order in which they ran."""
    ran = np.full(THREADS * PARTS, -1, np.int16)
    Kernel(ORDER, "order")(1, THREADS, np.zeros(1, np.int32), ran)
    return ran


def block_order(folder: Path) -> Path:
    """Who ran when: a row for each of 64 threads, a column for each turn."""
    left, top, across, down, gap = 84, 60, 2, 4, 36
    right, bottom = left + across * THREADS * PARTS, top + down * THREADS + gap
    picture = Picture(right + 16, bottom + 62, "The order in which 64 threads of a block ran")
    picture.text(left, 22, "One block of two warps on one thread of the CPU", "start", bold=True)
    for warp, colour in enumerate((BLUE, ORANGE)):
        middle = top + down * (32 * warp + 16) + gap * warp
        picture.text(left - 10, middle + 5, f"warp {warp}", "end", colour, bold=True)
    ran = turns()
    last: dict[int, int] = {}
    for turn, thread in enumerate(int(t) for t in ran):
        x, y = left + across * turn, top + down * thread + gap * (thread // 32)
        if thread in last:  # it has waited since its last turn
            begin = left + across * (last[thread] + 1)
            picture.rect(begin, y + 1.5, x - begin, 1, RULE)
        last[thread] = turn
        picture.rect(x, y, across, down, BLUE if thread < 32 else ORANGE)
    barrier = left + across * THREADS
    picture.line(barrier, top - 12, barrier, bottom + 8, colour=RED, dash="4 3")
    picture.text(barrier, top - 18, "__syncthreads()", colour=RED, size=13)
    met: set[int] = set()
    for turn in range(THREADS, THREADS * PARTS):  # a warp has met: its 32nd lane has come
        warp = int(ran[turn]) // 32
        come = ran[THREADS : turn + 1] // 32
        if warp not in met and (come == warp).sum() == 32:
            met.add(warp)
            x = left + across * (turn + 1)
            rows = top + (down * 32 + gap) * warp
            picture.line(x, rows - 12, x, rows + down * 32, colour=GREEN, dash="4 3")
            picture.text(x, rows - 18, "__syncwarp()", "middle", GREEN, size=13)
    picture.arrow(left, bottom + 20, right, bottom + 20)
    picture.text(right, bottom + 38, "time: one column a turn", "end", FAINT, size=13)
    picture.text(left, bottom + 38, "colour: runs; grey: waits", "start", FAINT, size=13)
    return picture.write(folder / "block_order.svg")


def fiber_states(folder: Path) -> Path:
    """The life of a CUDA thread on the emulator."""
    picture = Picture(480, 330, "The states of a CUDA thread on the emulator")
    picture.box(16, 20, 130, "fresh", "no stack yet", PALE_BLUE, BLUE)
    picture.box(176, 20, 128, "running", "one at a time", PALE_GREEN, GREEN)
    picture.box(334, 20, 130, "left", "its stack is free", "#eceff3", FAINT)
    picture.arrow(146, 43, 175, 43)
    picture.arrow(304, 43, 333, 43)
    picture.box(16, 150, 214, "at_warp", "waits for lanes of its mask", PALE_ORANGE, ORANGE)
    picture.box(250, 150, 214, "at_block", "waits for the block", PALE_ORANGE, ORANGE)
    picture.arrow(206, 66, 206, 108, 123, 108, 123, 149)
    picture.arrow(274, 66, 274, 108, 357, 108, 357, 149)
    picture.text(123, 100, "__syncwarp, shuffle, vote", size=12)
    picture.text(372, 100, "__syncthreads", size=12)
    picture.box(133, 264, 214, "ready", "goes on when it is its turn", PALE_BLUE, BLUE)
    picture.arrow(123, 196, 123, 232, 190, 232, 190, 263)
    picture.arrow(357, 196, 357, 232, 290, 232, 290, 263)
    picture.text(178, 224, "all have come", size=12)
    picture.text(302, 224, "all have come", size=12)
    picture.arrow(240, 264, 240, 240, 240, 67)
    return picture.write(folder / "fiber_states.svg")


def gemm_tiles(folder: Path) -> Path:
    """What a block reads and writes in both steps of the ladder, to scale: 2 for an element."""
    picture = Picture(480, 620, "The tiles of two matrix products")
    steps = (
        (0, 16, 1, "Step 1: tiles of 16x16 in shared memory", "1 element"),
        (310, 64, 4, "Step 2: a tile of 64x64, 4x4 in registers", "4x4 elements"),
    )
    for top, tile, own, title, share in steps:
        picture.text(16, top + 26, title, "start", bold=True)
        a, b, c = (40, top + 144), (204, top + 46), (204, top + 144)
        matrices = ((a, (140, 150), "A"), (b, (170, 86), "B"), (c, (170, 150), "C"))
        for (x, y), (w, h), name in matrices:
            picture.rect(x, y, w, h, "#f4f6f9", RULE)
            picture.text(x - 12, y + 16, name, bold=True)
        row, column, step, size = 12, 20, 2 * 16, 2 * tile
        picture.rect(a[0], a[1] + row, 140, size, PALE_BLUE)
        picture.rect(b[0] + column, b[1], size, 86, PALE_ORANGE)
        picture.rect(a[0] + step, a[1] + row, step, size, BLUE)
        picture.rect(b[0] + column, b[1] + step, size, step, ORANGE)
        picture.rect(c[0] + column, c[1] + row, size, size, PALE_GREEN, GREEN)
        picture.rect(c[0] + column + 16, c[1] + row + 16, 2 * own, 2 * own, GREEN)
        for number, line in enumerate(("dark: in shared", "memory now")):
            picture.text(382, top + 66 + 16 * number, line, "start", size=12)
        for number, line in enumerate(("a thread:", share, "of C")):
            picture.text(382, top + 180 + 16 * number, line, "start", GREEN, size=12)
    return picture.write(folder / "gemm_tiles.svg")


def draw_all(folder: Path = IMAGES) -> list[Path]:
    folder.mkdir(exist_ok=True)
    return [block_order(folder), fiber_states(folder), gemm_tiles(folder)]


if __name__ == "__main__":
    for picture in draw_all():
        print(picture)
