"""One call of every command of `tinygraph`, each in a fork of one process that has loaded all.

    python -m tests.every_command FOLDER REPORT

The report has a line of JSON for each: its words, exit code, and a traceback if it had one.  What
the standard streams of this process are is up to whoever starts it; see test_streams.py.
"""

import fcntl
import json
import os
import sys
import time
import traceback
from importlib import import_module
from importlib.util import find_spec

SCALE = """__global__ void scale(float* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= 2.0f;
}
"""
LAUNCH = ["--grid", "4", "--block", "256", "--arg", "x=rng.random(1000)", "--arg", "n=1000"]
OP = """import tinygraph as tg


def double(x):
    return 2 * x
"""
PROGRAM = """#include <cstdio>
int main() { printf("done\\n"); return 0; }
"""
LOADED = (
    "tinygraph.cli",
    "tinygraph.interop.onnx",
    "matplotlib.pyplot",
    "onnx.helper",
    "PIL.Image",
    "numba",
)
COURSE = find_spec("tinygraph_course") is not None  # the framework does without it
QUICK = ["--epochs", "1", "--filters", "1"]


def commands(folder):
    """The words of each command, with names of files below a folder, and its exit code."""

    def file(name):
        return os.path.join(folder, name)

    kernel = [file("scale.cu"), *LAUNCH]
    course = [
        (["start", file("another")], 0),
        (["check", "1"], 1),  # nobody has worked on it
        (["hint", "1"], 0),
        (["run", "none"], 2),
        (["status"], 0),
        (["reset", "1"], 0),
        (["solution", "1", "--anyway"], 0),
        (["verify", "none"], 2),  # a minute; as `private`
        (
            ["grade", file("submission"), "--exercise", "1", "--jobs", "1", "--csv", file("g.csv")],
            0,
        ),
        (["gradescope", file("grader.zip"), "--exercise", "1"], 0),
        (["build", "--stripped", file("dist")], 0),
        (["private", "none", file("pack.toml")], 2),
        (["protocol", file("absent.toml")], 2),
    ]
    return [
        (["train", "numba_cnn", *QUICK, "--run", file("new")], 0),
        (["train", "--resume", file("new"), "--epochs", "2"], 0),
        (["train", "xor_mlp", "--epochs", "5", "--run", file("xor")], 0),
        (["evaluate", file("numba")], 0),
        (["recipes"], 0),
        (["export", file("numba"), file("model.onnx")], 0),
        (["sample", file("text"), "--length", "20"], 0),
        (["show", file("numba")], 0),
        (["super-resolve", file("in.png"), file("out.png"), "--parameters", file("p")], 0),
        (["experiment", "numba_cnn", "--quick", "--data", "digits", "--rounds", "1",
          "--images", "200", "--epochs", "1", "--run", file("experiment")], 0),
        (["gradcheck", file("my_op.py") + ":double"], 0),
        (["kernels", file("scale.cu"), "--arch", "sm_90"], 0),
        (["check-kernel", *kernel], 0),
        (["step-kernel", *kernel, "--page", file("scale.html")], 0),
        (["run-cuda", file("program.cu")], 0),
        (["profile", "numba_cnn", "--device", "cpu", "--steps", "1", "--filters", "1",
          "--picture", file("profile.svg")], 0),
        (["doctor"], 0),
        (["--help"], 0),
        *((["course", *words], code) for words, code in course if COURSE),
    ]  # fmt: skip


def main():
    folder, report = sys.argv[1:]
    # Not 0, 1 or 2, which may be closed.
    low = os.open(report, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    out = fcntl.fcntl(low, fcntl.F_DUPFD_CLOEXEC, 50)
    os.close(low)
    os.chdir(os.path.join(folder, "course" if COURSE else "."))
    for name in LOADED:
        import_module(name)
    run = import_module("tinygraph_command").main
    for words, expected in commands(folder):
        started = time.perf_counter()
        child = os.fork()
        if not child:

            def hook(kind, error, place, words=words):
                text = "".join(traceback.format_exception(kind, error, place))
                os.write(out, (json.dumps({"words": words, "traceback": text}) + "\n").encode())

            sys.excepthook, sys.argv = hook, ["tinygraph", *words]
            sys.exit(run())
        _, status = os.waitpid(child, 0)
        code = os.waitstatus_to_exitcode(status)
        seconds = round(time.perf_counter() - started, 2)
        row = {"words": words, "code": code, "expected": expected, "seconds": seconds}
        os.write(out, (json.dumps(row) + "\n").encode())


if __name__ == "__main__":
    main()
