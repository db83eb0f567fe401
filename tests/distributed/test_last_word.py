"""The shell that speaks when no rank can, however late it begins."""

import os
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import pytest

from tests.distributed.launch import ROOT
from tinygraph.distributed.ending import LastWord

ALONE = SimpleNamespace(rank=0, broadcast_object=lambda value: value)
LATE = "sleep 0.3; "
DIES = """
import os, signal
from types import SimpleNamespace
from tinygraph.distributed.ending import LastWord

LastWord._SCRIPT = {late!r} + LastWord._SCRIPT
word = LastWord(SimpleNamespace(rank=0, broadcast_object=lambda value: value), "go on like this")
print(os.path.dirname(word._pipe), flush=True)
{ends}
"""


@pytest.mark.parametrize("late", ["", LATE])
def test_withdrawn_at_once_it_says_nothing_and_is_gone(late, monkeypatch, capfd):
    monkeypatch.setattr(LastWord, "_SCRIPT", late + LastWord._SCRIPT)
    word = LastWord(ALONE, "go on like this")
    thread = threading.Thread(target=word.withdraw, daemon=True)
    thread.start()
    thread.join(20)
    assert not thread.is_alive() and word._shell.returncode == 0
    assert capfd.readouterr().err == "" and not os.path.exists(word._pipe)


@pytest.mark.parametrize("late", ["", LATE])
@pytest.mark.parametrize("ends", ["os.kill(os.getpid(), signal.SIGKILL)", "word.withdraw()"])
def test_it_speaks_for_a_process_that_is_killed(late, ends):
    program = DIES.format(late=late, ends=ends)
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=60
    )  # to the end of all that it has started
    assert done.stderr == ("go on like this\n" if "kill" in ends else "")
    deadline = time.monotonic() + 10
    while os.path.exists(done.stdout.strip()) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not os.path.exists(done.stdout.strip())
