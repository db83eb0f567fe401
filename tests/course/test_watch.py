"""`tinygraph course` as it is watched: what is saved, keys, predictions."""

import os
import time

import pytest

import tinygraph_course.commands.watch as course_watch
from tinygraph.cli import main
from tinygraph_course.checking.screen import screen, wrapped
from tinygraph_course.commands.folder import CourseFolder
from tinygraph_course.content.exercise import exercises, find

POOL = find("pool")
RIGHT_1 = POOL.stub.replace(
    "raise NotImplementedError('step 1')", "return (size - kernel) // stride + 1"
)
WRONG_1 = POOL.stub.replace("raise NotImplementedError('step 1')", "return size // kernel")


class Hands:
    """In the place of a keyboard: keys, lines that are typed, and what else is done meanwhile."""

    there = True

    def __init__(self, *acts):
        self.acts, self.prompts = list(acts), 0

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        pass

    def pressed(self, seconds):
        act = self.acts.pop(0)
        if callable(act):
            act()
            return ""
        return act

    def line(self, prompt):
        self.prompts += 1
        return self.acts.pop(0)


@pytest.fixture
def folder(tmp_path, monkeypatch, capsys):
    assert main(["course", "start", str(tmp_path)]) == 0
    monkeypatch.chdir(tmp_path)
    capsys.readouterr()
    made = CourseFolder(tmp_path)
    for each in exercises():
        if each.number < POOL.number:  # so that pool is the current one
            made.note(each, {"passed": [step.number for step in each.steps]})
    return made


@pytest.fixture
def watched(folder, monkeypatch, capsys):
    def watch(*acts):
        hands = Hands(*acts)
        monkeypatch.setattr(course_watch, "Keyboard", lambda: hands)
        assert main(["course"]) == 0
        assert not hands.acts
        return capsys.readouterr().out

    return watch


def test_predictions_are_asked_once_and_answered_at_the_end(folder, watched):
    file = folder.file(POOL)
    out = watched("2", "", "q")
    assert "two" not in out and POOL.predictions[0]["question"] in out
    assert folder.of(POOL)["predicted"] == ["2", ""]
    out = watched(lambda: file.write_text(POOL.solution), "", "q")
    assert POOL.predictions[0]["question"] in out and "  You: 2\n  It is 3.\n" in out
    assert f"predicted:\n\n{POOL.predictions[0]['question'][:20]}" in out
    assert POOL.predictions[1]["question"] not in out  # that one was left out
    assert folder.answers(POOL) == []  # told once


def test_a_file_is_checked_when_it_is_saved_also_by_renaming(folder, watched):
    file = folder.file(POOL)
    folder.note(POOL, {"predicted": []})

    def rename():
        new = file.with_name("new~")
        new.write_text(WRONG_1)
        os.utime(new, ns=(1, file.stat().st_mtime_ns))  # as old as the one before
        new.replace(file)

    out = watched(rename, "", lambda: file.write_text(RIGHT_1), "", "q")
    places = [out.index(words) for words in ("next   1", "wrong  1", "ok     1")]
    assert places == sorted(places) and out.count("checking 08_pool.py") == 3


def test_a_file_that_goes_and_comes_back_ends_nothing(folder, watched):
    file = folder.file(POOL)
    folder.note(POOL, {"predicted": []})
    spoil, mend = lambda: file.write_bytes(b"\xff"), lambda: file.write_text(RIGHT_1)
    out = " ".join(watched(file.unlink, "", spoil, "", mend, "", "q").split())
    assert f"none. Way out: tinygraph course start {folder.path} makes it" in out
    assert "as text" in out and "ok 1" in out


def test_keys(folder, watched):
    file = folder.file(POOL)
    file.write_text(WRONG_1)
    for name in ("pool", "map"):
        folder.note(find(name), {"predicted": []})
    out = watched("h", "h", "l", "s", "x", "q")
    assert "hint 1 of 3" in out and "hint 2 of 3" in out
    assert ">  8  0 of 5" in out and "--anyway" in out
    assert "x again begins 08_pool.py anew" in out and file.read_text() == WRONG_1
    watched("x", "h", "x", "q")  # not twice in a row
    assert file.read_text() == WRONG_1
    assert "next   1" in watched("x", "x", "q")
    assert file.read_text() == POOL.stub
    assert "9 Maps" in watched("n", "q")


def test_three_equal_failures_offer_the_key(folder, watched):
    folder.note(POOL, {"predicted": []})
    folder.file(POOL).write_text(WRONG_1)
    out = watched("\n", " ", "q")
    assert out.count("checking 08_pool.py") == 3 and out.count("press h for a hint") == 1


def test_what_was_found_is_drawn_anew_at_another_size(folder, watched, monkeypatch):
    folder.note(POOL, {"predicted": []})
    folder.file(POOL).write_text(WRONG_1)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("NO_COLOR", "1")

    def to(**size):
        for name, value in size.items():
            monkeypatch.setenv(name, str(value))  # where the size is looked up first

    to(COLUMNS=88, LINES=50)
    out = watched("", lambda: to(COLUMNS=60), "", lambda: to(LINES=9), "", "", "q")
    assert out.count("checking") == 1 and int(folder.of(POOL)["failures"]) == 1
    _, wide, narrow, low = out.split("\x1b[2J\x1b[3J\x1b[H")
    assert max(map(len, wide.splitlines())) > 60 >= max(map(len, narrow.splitlines()))
    assert " 2  The largest pixel" in narrow and " 2  The largest pixel" not in low
    assert all("q quit" in drawn for drawn in (wide, narrow, low))


@pytest.mark.second
def test_once_all_steps_are_right_s_shows_the_solution_and_r_trains(folder, watched, monkeypatch):
    monkeypatch.setattr("tinygraph_course.checking.network.DigitNetwork.epochs", 1)
    folder.note(POOL, {"predicted": []})
    out = watched(lambda: folder.file(POOL).write_text(POOL.solution), "", "s", "r", "q")
    assert "r run   n next" in out and "np.add.at(gx" in out
    assert "epoch 1" in out and (folder.path / "08_pool.html").exists()


@pytest.mark.parametrize("width", [40, 60, 88])
def test_a_narrow_screen(width):
    text = (
        "One window is missing: you count the steps from one to the next,\nand there is one more."
    )
    assert all(len(line) <= width for line in wrapped(text, width))
    assert " ".join(wrapped(text, width)) == text.replace("\n", " ")
    deep = wrapped(f"  {text}".replace("\n", " "), width)
    assert all(line.startswith("  ") and line[2] != " " for line in deep)


def test_where_there_is_little_height_the_step_stands_alone(tmp_path):
    from tests.course.test_exercises import of

    outcome = of(POOL, 'print("a\\x1b[31m\\tb")\n' + WRONG_1, tmp_path)
    high, low = screen(outcome), screen(outcome, height=12)
    assert len(high) - len(low) == 4 and low[1].startswith("  wrong  1")
    assert all(len(line) <= 60 for line in screen(outcome, width=60))
    assert "\x1b" not in "".join(high)  # what is printed cannot steer the terminal


@pytest.mark.second
def test_a_real_terminal_is_as_it_was_afterwards(folder):
    pty, termios = pytest.importorskip("pty"), pytest.importorskip("termios")
    import subprocess
    import sys

    folder.note(POOL, {"predicted": []})
    ours, its = pty.openpty()
    before = termios.tcgetattr(its)
    command = [sys.executable, "-m", "tinygraph", "course"]
    with subprocess.Popen(command, stdin=its, stdout=its, stderr=its, cwd=folder.path) as process:
        seen, deadline = b"", time.monotonic() + 60
        while b"q quit" not in seen and time.monotonic() < deadline:
            seen += os.read(ours, 4096)
        os.write(ours, b"hq")
        assert process.wait(30) == 0
    assert termios.tcgetattr(its) == before
    os.close(ours)
    os.close(its)


@pytest.mark.second
def test_where_the_step_is_too_high_its_words_stay_and_the_picture_goes(tmp_path):
    from tests.course.test_exercises import of

    sums = find("sums")
    text = sums.solution.replace("    __syncthreads();\n", "")
    assert text != sums.solution
    outcome = of(sums, text, tmp_path)
    high, low = screen(outcome, width=60), screen(outcome, width=60, height=15)
    assert high[-1].split() == ["objects"] and all(len(line) <= 60 for line in high)
    assert len(low) <= 15 and outcome.failure.picture.splitlines()[0] not in "\n".join(low)
    assert low[1].startswith("  wrong  2") and wrapped(outcome.failure.text, 60)[0] in low


def test_two_long_values_are_shown_from_where_they_differ():
    from tinygraph_course.checking.screen import _from_where_they_differ as cut

    same, expected, got = "[" + "10, " * 30, "7, 3]", "8, 3]"
    assert cut(same + expected, same + got, 200) == (same + expected, same + got)
    pair = cut(same + expected, same + got, 60)
    assert all(len(part) <= 60 for part in pair)
    assert pair[0].startswith("... 10, ") and pair[0].endswith(" 10, 7, 3]")
    assert pair[1].endswith(" 10, 8, 3]")
    assert cut("[1, 2]" * 40, "", 60) == ("[1, 2]" * 40, "")


def test_what_goes_wrong_is_written_over_the_word_checking(folder, watched, monkeypatch):
    folder.note(POOL, {"predicted": []})
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    out = watched(folder.file(POOL).unlink, "", "q")
    assert "checking 08_pool.py ...\r\x1b[Kcourse check: " in out
