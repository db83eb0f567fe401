"""Make the pages of launches that the documentation shows: python docs/live_kernels.py FOLDER

They are those that the commands of kernels/step_by_step.md write.  The pictures on that page are
made of them, in headless Chromium: python docs/live_kernels.py FOLDER --pictures
"""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import refresh_output  # noqa: E402  # docs/refresh_output.py

PAGE = HERE / "kernels" / "step_by_step.md"
PICTURES = {  # page, what is behind its name, height
    "step_by_step_banks.png": ("steps-block_sum.html", "step=17", 740),
    "step_by_step_sectors.png": ("steps-row_sums.html", "step=3", 850),
    "step_by_step_race.png": ("steps-shift.html", "step=2&order=1", 910),
}


def make_all(folder: Path) -> list[Path]:
    """The pages, in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    text = PAGE.read_text(encoding="utf-8")
    made = []
    with tempfile.TemporaryDirectory() as scratch:
        for name, source in refresh_output.files(text).items():
            Path(scratch, name).write_text(source, encoding="utf-8")
        for block in refresh_output.blocks(text, "console"):
            printed = refresh_output.session(block, scratch)
            for name in re.findall(r"^wrote (.*)$", printed, re.MULTILINE):
                made.append(Path(shutil.copy(Path(scratch, name), folder)))
    return made


def draw(folder: Path) -> list[Path]:
    """The pictures of PAGE, of pages that are there."""
    from tests.browser import screenshot

    drawn = []
    for name, (page, address, height) in PICTURES.items():
        drawn.append(HERE / "images" / name)
        screenshot(folder / page, drawn[-1], address, 1280, height)
    return drawn


if __name__ == "__main__":
    target = Path(sys.argv[1])
    print(*make_all(target), sep="\n")
    if "--pictures" in sys.argv:
        print(*draw(target), sep="\n")
