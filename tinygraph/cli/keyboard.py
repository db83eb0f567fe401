"""Single keys of a terminal, without Enter."""

from __future__ import annotations

import os
import select
import sys
import termios
import time
import tty


class Keyboard:
    """Keys as they are pressed; to be used in a `with`.  Where stdin is no terminal there are none.

    Ctrl-C is KeyboardInterrupt, as ever, and the terminal is as it was when the `with` ends.
    """

    def __init__(self) -> None:
        self.there = sys.stdin.isatty() and sys.stdout.isatty()
        self._before = termios.tcgetattr(sys.stdin) if self.there else None

    def __enter__(self) -> Keyboard:
        self._single()
        return self

    def __exit__(self, *exception: object) -> None:
        self._lines()

    def pressed(self, seconds: float) -> str:
        """The key that is pressed within so many seconds; empty for none, "q" where stdin ended."""
        if not self.there:
            time.sleep(seconds)
            return ""
        if not select.select([sys.stdin], [], [], seconds)[0]:
            return ""
        typed = os.read(sys.stdin.fileno(), 64)
        if not typed:
            return "q"
        return "" if typed[:1] == b"\x1b" else chr(typed[-1])  # arrows and the like are no keys

    def line(self, prompt: str) -> str:
        """A line that is typed; empty where stdin ended."""
        self._lines()
        try:
            return input(prompt).strip()
        except EOFError:
            print()
            return ""
        finally:
            self._single()

    def _single(self) -> None:
        if self.there:
            tty.setcbreak(sys.stdin, termios.TCSADRAIN)

    def _lines(self) -> None:
        if self._before is not None:
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, self._before)
