"""One section: the child process of `make gpu`.

    python -m benchmarks.gpu.section NAME PAGE [--rehearse] [--quick] [--go-on]

Ends with 0, or with 1 if the section failed; its text, an error's too, is on the page.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import traceback
from pathlib import Path

from benchmarks import children
from benchmarks.gpu import SECTIONS, machine, plots, rehearsal, torch_side
from benchmarks.gpu.page import BEGUN, FAILED, FINISHED, Page, Result, error_text, section_text
from benchmarks.gpu.room import EventClock, Room, WallClock


def measure(name: str, room: Room, page: Page) -> bool:
    """Run a section and put it on the page; whether it ended well."""
    title = name
    room.on_news(lambda result: page.put(name, section_text(result, {}, room.rehearse), BEGUN))
    try:
        module = importlib.import_module(f"benchmarks.gpu.{name}")
        title = module.TITLE
        result: Result = module.run(room)
        pictures = plots.draw(result.plots, page.path.parent, page.path.stem, room.rehearse)
        if result.plots and not pictures:
            result.left_out.append("plots: matplotlib is absent")
        text, good = section_text(result, pictures, room.rehearse), not result.failed
    except Exception:
        found = page.sections.get(name)
        before = found.text if found and found.state == BEGUN else ""
        error = traceback.format_exc().replace(f"{children.ROOT}/", "")  # the page is for others
        text, good = error_text(title, error, room.rehearse, before), False
        traceback.print_exc()
    page.put(name, text, FINISHED if good else FAILED)
    return good


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu.section")
    parser.add_argument("name", choices=SECTIONS)
    parser.add_argument("page", type=Path)
    for flag in ("--rehearse", "--quick", "--go-on"):
        parser.add_argument(flag, action="store_true")
    args = parser.parse_args()
    page = Page(args.page, list(SECTIONS), args.rehearse)
    cupy, missing = (rehearsal.cupy(), "") if args.rehearse else machine.find_gpu()
    if missing:
        print(missing, file=sys.stderr)
        return 3
    found = page.sections.get(args.name)
    room = Room(
        "emulator" if cupy is None else "cuda",
        WallClock() if cupy is None else EventClock(cupy),
        torch_side.find(gpu=not args.rehearse),
        args.rehearse,
        args.quick,
        before=found.text if found and args.go_on else "",
    )
    return 0 if measure(args.name, room, page) else 1


if __name__ == "__main__":
    sys.exit(main())
