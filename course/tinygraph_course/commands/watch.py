"""`tinygraph course`: the current exercise is checked whenever it is saved, and there are keys."""

from __future__ import annotations

import shutil
import sys
import time
from argparse import Namespace
from typing import Any

from tinygraph.base.errors import ArgumentError
from tinygraph.cli.keyboard import Keyboard
from tinygraph_course.checking.check import Outcome
from tinygraph_course.checking.screen import wrapped
from tinygraph_course.commands import learn
from tinygraph_course.commands.folder import CourseFolder
from tinygraph_course.content.exercise import Exercise, exercises

_PAUSE = 0.1  # seconds between two looks at the file
_OFFER = "The same three times: press h for a hint."


def watch(args: Namespace) -> dict[str, Any]:
    """Check the current exercise whenever its file is saved, until q or Ctrl-C.

    Where stdin or stdout is no terminal there are no keys: then each exercise that is whole is
    followed by the next one, and the last one ends it.
    """
    folder = learn.folder_here()
    with Keyboard() as keyboard:
        return Watch(folder, keyboard).run()


class Watch:
    """What is on the screen, and what the keys do."""

    def __init__(self, folder: CourseFolder, keyboard: Keyboard) -> None:
        self.folder, self.keyboard = folder, keyboard
        self.exercise = folder.current()
        self.found: learn.Checked | None = None
        self.size: Any = None  # of the terminal, when something was last written
        self.last = ""  # the key before

    @property
    def outcome(self) -> Outcome | None:
        """What the last check found; None where there was no file."""
        return None if self.found is None else self.found.outcome

    def run(self) -> dict[str, Any]:
        """Until it ends."""
        seen: Any = None
        key = ""
        while key != "q":
            stamp = self._stamp()
            if stamp != seen and stamp == self._after(stamp):
                seen = stamp
                self._predictions()
                self._check()
                if not self.keyboard.there and self.outcome is not None and self.outcome.ok:
                    if self.folder.current().name == self.exercise.name:
                        print("All exercises are done.")
                        break
                    self.exercise = self.folder.current()
            self._redraw()
            key = self.keyboard.pressed(_PAUSE)
            if key:
                try:
                    seen = self._pressed(key, seen)
                except ArgumentError as error:  # what was asked for cannot be done now
                    self._say(f"{error}")
                self.last = key
        return {} if self.outcome is None else {**self.outcome.to_dict(), "ok": True}

    def _stamp(self) -> tuple[Any, ...]:
        """What is another once the file was saved, also by renaming a new one."""
        try:
            found = self.folder.file(self.exercise).stat()
        except OSError:
            return self.exercise.name, None
        return self.exercise.name, found.st_mtime_ns, found.st_size, found.st_ino

    def _after(self, stamp: Any) -> Any:
        """The same a moment later, where the file is being written or is away for it."""
        if stamp[1] is None:
            time.sleep(_PAUSE)
        return self._stamp()

    # ---- the screen -------------------------------------------------------------------------

    def _clear(self) -> None:
        if sys.stdout.isatty():
            print("\x1b[2J\x1b[3J\x1b[H", end="")

    def _check(self) -> None:
        file = self.folder.file(self.exercise)
        self._clear()
        self.found = None
        print(f"checking {file.name} ...", end="" if self.keyboard.there else "\n", flush=True)
        try:
            offer = _OFFER if self.keyboard.there else learn.OFFER
            self.found = learn.checked(self.folder, self.exercise, offer)
        except ArgumentError as error:  # no file, or no text: it may come back
            learn.wiped()
            print("\n".join(wrapped(f"{error}", learn.width())))
        self._bar()

    def _redraw(self) -> None:
        """What was found once more, where the terminal has another size now."""
        size, self.size = self.size, shutil.get_terminal_size()
        if size in (None, self.size) or self.found is None or not self.keyboard.there:
            return
        self._clear()
        learn.show(*self.found)
        learn.link(self.found.page)
        self._bar()

    def _bar(self) -> None:
        """What the keys do."""
        if not self.keyboard.there:
            learn.say(f"\nwatching {self.folder.file(self.exercise)} (Ctrl-C ends)")
            return
        words = ["h hint", "n next", "l list", "s solution", "x reset", "q quit"]
        if self.folder.whole(self.exercise):
            words[0] = "r run" if self.exercise.network else "Enter check"
        learn.say("\n" + "   ".join(words))

    def _predictions(self) -> None:
        """Ask before anything is written; an answer may be left out."""
        own = self.folder.of(self.exercise)
        if not self.keyboard.there or own["predicted"] is not None or own["passed"]:
            return
        self._clear()
        exercise = self.exercise
        lines = [
            f"{exercise.number} {exercise.title}  (about {exercise.minutes} minutes)",
            "",
            "Before you write: what do you think? It is answered when all steps are right, and\n"
            "nobody counts it. Enter alone leaves one out.",
        ]
        self._say(*lines)
        given = []
        for asked in self.exercise.predictions:
            self._say("", asked["question"])
            given.append(self.keyboard.line("> "))
        self.folder.note(self.exercise, {"predicted": given})

    def _say(self, *lines: str) -> None:
        print("\n".join(part for line in lines for part in wrapped(line, learn.width()) or [""]))

    # ---- the keys ---------------------------------------------------------------------------

    def _pressed(self, key: str, seen: Any) -> Any:
        """Do what a key says; what was seen of the file, None to look at it anew."""
        args = Namespace(of=self.exercise.name, anyway=False)
        if key == "h":
            print()
            learn.hint(args)
        elif key == "n":
            self.exercise = self._next()
            return None
        elif key == "l":
            self._clear()
            learn.status(args)
            self._bar()
        elif key == "s" and self.folder.whole(self.exercise):
            learn.solution(args)
            self._bar()
        elif key == "s":
            number = self.exercise.number
            self._say(
                "The solution is shown once all steps are right; before that "
                f"`tinygraph course solution {number} --anyway` prints it."
            )
        elif key == "r" and self.folder.whole(self.exercise) and self.exercise.network:
            learn.run(args)
            self._bar()
        elif key == "x" and self.last == "x":
            learn.reset(args)
            return None
        elif key == "x":
            self._say(
                f"x again begins {self.exercise.file} anew; yours is kept in .course/backups."
            )
        elif key in "\n\r ":
            return None
        return seen

    def _next(self) -> Exercise:
        """The exercise after this one; after the last one the first."""
        known = exercises()
        names = [exercise.name for exercise in known]
        return known[(names.index(self.exercise.name) + 1) % len(known)]
