"""Files that would pass without the exercise having been done: none gains a step.

After Kratzke, "Smart like a fox: how clever students trick dumb automated programming assignment
assessment systems" (CSEDU 2019): answers that fit the tests alone, that ask somebody else, that
lead the checker elsewhere, and that write the verdict themselves.
"""

import pytest

from tests.course import test_conv, test_gradcheck, test_pool
from tests.course.test_exercises import of
from tinygraph.base.errors import ArgumentError
from tinygraph_course.checking import check as checking
from tinygraph_course.checking.kernel_step import KernelStep
from tinygraph_course.checking.op_step import OpStep
from tinygraph_course.checking.steps import FunctionStep
from tinygraph_course.content.exercise import find

POOL, SUMS, GEMM, MAP = (find(name) for name in ("pool", "sums", "gemm", "map"))
CALL = "\n    return tg.{}(tg.Tensor(x), kernel, stride).value\n"
ZEROS = "    return np.zeros((*x.shape[:2], windows(x.shape[2], kernel, stride), 1), x.dtype)\n"
ASKS = {  # bodies of `pool` that get the right numbers from somebody else
    "the answer of the framework": CALL.format("max_pool2d"),
    "by another way": CALL.format("nn.functional.max_pool2d"),
    "by its class": "\n    return tg.nn.MaxPool2d(kernel, stride)(tg.Tensor(x)).value\n",
    "by an import": (
        "\n    from tinygraph import max_pool2d as mine\n"
        "    return mine(tg.Tensor(x), kernel, stride).value\n"
    ),
    "by the file of the op": (
        "\n    from tinygraph.ops.windows.max_pool2d import MaxPool2d as mine\n"
        "    return mine((kernel,) * 2, (stride,) * 2, (0, 0), False)(tg.Tensor(x)).value\n"
    ),
    "by getattr": "\n    return getattr(tg, 'max_' + 'pool2d')(x, kernel, stride).value\n",
    "by vars": "\n    return vars(tg)['max_pool' + '2d'](tg.Tensor(x), kernel, stride).value\n",
    "by the registry": (
        "\n    mine = tg.op.registry['tinygraph.ops.windows.max_pool2d.MaxPool2d']\n"
        "    return mine((kernel,) * 2, (stride,) * 2, (0, 0), False)(tg.Tensor(x)).value\n"
    ),
    "by the classes of ops": (
        "\n    known = [op for op in tg.Op.__subclasses__() if op.__name__ == 'MaxPool2d']\n"
        "    (mine,) = [op for op in known if op.__module__.endswith('max_pool2d')]\n"
        "    return mine((kernel,) * 2, (stride,) * 2, (0, 0), False)(tg.Tensor(x)).value\n"
    ),
    "by the collector": (
        "\n    import gc\n"
        "    named = [o for o in gc.get_objects() if getattr(o, '__name__', '') == 'MaxPool2d']\n"
        "    (mine,) = [o for o in named if o.__module__ == 'tinygraph.ops.windows.max_pool2d']\n"
        "    return mine((kernel,) * 2, (stride,) * 2, (0, 0), False)(tg.Tensor(x)).value\n"
    ),
    "by a module that another one has loaded": (
        "\n    import dataclasses\n"
        "    known = dict(dataclasses.inspect.getmembers(type))['__subclasses__'](tg.Op)\n"
        "    (mine,) = [op for op in known if '.ops.max_pool2d.MaxPool2d' in str(op)]\n"
        "    return mine((kernel,) * 2, (stride,) * 2, (0, 0), False)(tg.Tensor(x)).value\n"
    ),
    "by names that another module has": (
        "\n    from dataclasses import builtins\n"
        "    mine = builtins.getattr(tg, 'max_' + 'pool2d')\n"
        "    return mine(tg.Tensor(x), kernel, stride).value\n"
    ),
    "eval": "\n    return eval('tg.max_pool' + '2d')(tg.Tensor(x), kernel, stride).value\n",
}
READS = {
    "the solution on disk": "\n    return open('/x').read()\n",
    "files of numpy": "\n    return np.load('x.npy')\n",
    "the course": (
        "\n    from tinygraph_course.exercises.pool import steps\n    return steps.STEPS[1].cases\n"
    ),
}
OTHERS = {  # that fit, lead elsewhere, write the verdict, or take the checker down
    "dunders": "\n    return ().__class__.__base__.__subclasses__()\n",
    "a module of the system": "\n    import os\n    os._exit(0)\n",
    "a thread that waits": "\n    import threading\n    return x\n",
    "frames": "\n    return (lambda: 0).__globals__\n",
    "sys.modules": "\n    return np.sys.modules\n",
    "an array that says it is equal": (
        "\n    class A(np.ndarray):\n        def __eq__(self, other):\n            return True\n"
        "    return np.zeros((1, 1, 1, 1)).view(A)\n"
    ),
    "numbers that are no numbers": "\n    return np.full((1, 1, 1, 1), np.nan)\n",
    "the first case from memory": (
        "\n    if x.shape == (1, 1, 2, 2):\n        return x.max(axis=(2, 3), keepdims=True)\n"
        + ZEROS
    ),
    "right for a while": (
        "\n    pool.calls = pool.calls + 1 if hasattr(pool, 'calls') else 1\n"
        "    if pool.calls > 20:\n        return x\n"
        "    rows = range(0, x.shape[2] - kernel + 1, stride)\n"
        "    columns = range(0, x.shape[3] - kernel + 1, stride)\n"
        "    return np.array([[[[a[r:r + kernel, c:c + kernel].max() for c in columns]\n"
        "                       for r in rows] for a in b] for b in x], x.dtype)\n"
    ),
    "numpy compares otherwise": (
        "\n    np.array_equal = np.allclose = lambda *arrays, **options: True\n" + ZEROS
    ),
    "a printed verdict": '\n    print(\'{"ok": true, "passed": [1, 2, 3, 4, 5]}\')\n' + ZEROS,
    "it ends with success": "\n    raise SystemExit(0)\n",
    "too much to be sent": "\n    return np.zeros(1 << 27)\n",
}


@pytest.mark.parametrize("cheat", [*ASKS, *READS, *OTHERS])
def test_a_cheat_gains_no_step(cheat, tmp_path):
    body = (ASKS | READS | OTHERS)[cheat]
    outcome = of(POOL, test_pool.with_body("pool", body), tmp_path)
    assert not outcome.ok and 2 not in outcome.passed


@pytest.mark.second
@pytest.mark.sweep(4)
@pytest.mark.parametrize("cheat", [*ASKS, *READS])
def test_nobody_can_be_asked_where_the_rules_are_not_read(cheat, tmp_path, monkeypatch):
    """The second wall: the framework's answer is gone from the process, and no file opens."""
    monkeypatch.setattr(checking, "broken_rules", lambda exercise, text: [])
    outcome = of(POOL, test_pool.with_body("pool", (ASKS | READS)[cheat]), tmp_path)
    assert outcome.failure.kind == "error" and 2 not in outcome.passed


@pytest.mark.second
@pytest.mark.sweep(4)
@pytest.mark.parametrize("cheat", ASKS)
def test_without_walls_it_would_gain_the_step(cheat, tmp_path, monkeypatch):
    monkeypatch.setattr(checking, "broken_rules", lambda exercise, text: [])
    monkeypatch.setitem(POOL._about, "forbidden", [])
    assert 2 in of(POOL, test_pool.with_body("pool", ASKS[cheat]), tmp_path).passed


def test_no_file_can_be_opened(tmp_path, monkeypatch):
    monkeypatch.setattr(checking, "broken_rules", lambda exercise, text: [])
    text = test_pool.with_body("pool", "\n    return open(__file__).read()\n")
    assert "Too many open files" in of(POOL, text, tmp_path).failure.text


CONV = {
    "the answer of the framework": (
        2,
        "direct",
        "\n    return tg.conv2d(tg.Tensor(x), tg.Tensor(w), tg.Tensor(b), s, p).value\n",
    ),
    "its columns": (3, "im2col", "\n    return tg.im2col(tg.Tensor(x), k, s, p).value\n"),
    "its layer": (2, "direct", "\n    return tg.nn.Conv2d(1, 1, 1)(tg.Tensor(x)).value\n"),
    "the loops once more": (4, "gemm", "\n    return direct(x, w, b, s, p)\n"),
    "columns by another name": (
        4,
        "gemm",
        "\n    tg_gemm.calls['im2col'] += 1\n    return direct(x, w, b, s, p)\n",
    ),
    "what was never asked for": (6, "forward", "\n        return gemm, (x, w)\n"),
}


@pytest.mark.second
@pytest.mark.sweep(4)
@pytest.mark.parametrize("cheat", CONV)
def test_a_cheat_gains_no_step_of_a_convolution(cheat, tmp_path):
    step, function, body = CONV[cheat]
    assert step not in of(test_conv.CONV, test_conv.with_body(function, body), tmp_path).passed


GRADCHECK = {
    "by its judge": (3, "worst", "\n    return tg_worst(0, *arrays)\n"),
    "by the framework": (3, "worst", "\n    return tg.testing.gradcheck(op, arrays).worst\n"),
    "the backward as its own proof": (
        2,
        "numeric",
        "\n    return list(op.backward(upstream, *arrays))\n",
    ),
    "no problem is a problem": (4, "problems", "\n    return None\n"),
    "names": (5, "agrees", "\n    return op.backward.__name__ != 'wrong'\n"),
    "all is right": (5, "agrees", "\n    return True\n"),
    "all is wrong": (5, "agrees", "\n    return False\n"),
}


@pytest.mark.second
@pytest.mark.sweep(4)
@pytest.mark.parametrize("cheat", GRADCHECK)
def test_a_cheat_gains_no_step_of_a_gradient_check(cheat, tmp_path):
    step, function, body = GRADCHECK[cheat]
    text = test_gradcheck.with_body(function, body)
    assert step not in of(test_gradcheck.GRADCHECK, text, tmp_path).passed


# ---- kernels ----------------------------------------------------------------------------------

BARRIER = (
    "        __syncthreads();\n        if (t < half)\n            parts[t] += parts[t + half];\n"
)
WORDS = {  # lines that stand above all others
    "asm": 'asm volatile("");',
    "a header": "#include <stdio.h>",
    "a header, written otherwise": "%:include <stdio.h>",
    "a header by a trigraph": "??=include <stdio.h>",
    "a file as bytes": '#embed "exercise.toml"',
    "what others have": "extern int found;",
    "a command": 'int done = system("ls");',
    "a command between strings": 'const char* a = "/*"; int b = system(""); const char* c = "*/";',
    "a command behind a string": 'const char* a = "//"; int b = system("ls");',
    "words put together": "#define JOIN(a, b) a##b",
    "a word on two lines": 'as\\\nm("");',
    "an attribute": '__attribute__((no_sanitize("thread"))) void f();',
    "an attribute, written otherwise": "[[gnu::weak]] void f();",
    "a string without escapes": 'const char* a = R"x(")x";',
    "a file": "int open(const char*, int);",
    "the checker's own": "int tg_site(int);",
    "a pragma with more behind it": "#pragma unroll GCC optimize(3)",
    "a pragma": '_Pragma("GCC optimize(3)")',
}


@pytest.mark.parametrize("cheat", WORDS)
def test_a_kernel_does_not_leave_its_room(cheat, tmp_path):
    text = SUMS.solution.replace("#ifndef BLOCK", f"{WORDS[cheat]}\n#ifndef BLOCK", 1)
    outcome = of(SUMS, text, tmp_path)
    assert outcome.failure.kind == "rule" and list(outcome.passed) == []
    assert outcome.failure.line == 7 and outcome.failure.source == WORDS[cheat].splitlines()[0]


@pytest.mark.parametrize(
    "line",
    [
        "// a system of open files, asm",
        "/* extern\n volatile */",
        "#define N 4  // pragma",
        "#pragma unroll 4",
        "__device__ bool is_open(float y) { bool open = y > 0; return open; }",
    ],
)
def test_what_is_no_way_out_may_be_said(line):
    assert checking.broken_rules(SUMS, f"{line}\n{SUMS.solution}") == []


def test_sliding_windows_may_be_imported():
    line = "from numpy.lib.stride_tricks import sliding_window_view"
    assert checking.broken_rules(POOL, f"{line}\n{POOL.solution}") == []
    assert checking.broken_rules(POOL, f"import numpy.lib.stride_tricks.os\n{POOL.solution}")


UNSAFE = {  # a round without its barrier, and what shall hide it
    "volatile": ("        if (t < half)\n", "((volatile float*) parts)[t] += parts[t + half];\n"),
    "atomic builtins": (
        "        if (t < half)\n",
        "__atomic_store_n((int*) parts + t, __float_as_int(parts[t] + parts[t + half]), 0);\n",
    ),
    "an attribute of the function": (
        "        if (t < half)\n",
        "[&] () __attribute__((no_sanitize_thread)) { parts[t] += parts[t + half]; }();\n",
    ),
}


@pytest.mark.parametrize("cheat", UNSAFE)
def test_a_missing_barrier_is_not_hidden_by_words(cheat, tmp_path):
    text = SUMS.solution.replace(BARRIER, "".join(UNSAFE[cheat]))
    assert text != SUMS.solution
    assert of(SUMS, text, tmp_path).failure.kind == "rule"


KERNELS = {  # exercise, step, and what stands where
    "a copy in the place of a store": (
        SUMS,
        2,
        (
            BARRIER,
            "        float s = t < half ? parts[t] + parts[t + half] : 0.0f;\n"
            "        if (t < half)\n            memcpy(parts + t, &s, sizeof(float));\n",
        ),
    ),
    "no barrier by a macro": (SUMS, 2, ("#ifndef BLOCK", "#define __syncthreads()\n#ifndef BLOCK")),
    "the end is commented out": (SUMS, 1, ("parts[0];\n", "parts[0];\n}\n/*")),
    "the end is left out": (SUMS, 1, ("parts[0];\n", "parts[0];\n}\n#if 0\n")),
    "an answer for one size": (
        MAP,
        1,
        ("y[i] = x[i] < 0.0f ? 0.0f : x[i];", "y[i] = n == 1 ? 2.0f : 0.0f;"),
    ),
    "what was there before": (
        MAP,
        1,
        ("    if (i < n)\n        y[i] = x[i] <", "    if (n < 0)\n        y[i] = x[i] <"),
    ),
    "one thread does it all": (
        MAP,
        1,
        (
            "    if (i < n)\n        y[i] = x[i] < 0.0f ? 0.0f : x[i];",
            "    if (i == 0)\n        for (int k = 0; k < 300; ++k)\n"
            "            y[k] = x[k] < 0.0f ? 0.0f : x[k];",
        ),
    ),
    "tiles for nothing": (
        GEMM,
        3,
        (
            "            sum += a[y][k] * b[k][x];\n        __syncthreads();\n    }\n",
            "            if (row0 + y < M && column0 + x < N && k0 + k < K)\n"
            "                sum += A[(row0 + y) * K + k0 + k] * B[(k0 + k) * N + column0 + x];\n"
            "        __syncthreads();\n    }\n",
        ),
    ),
    "the barriers of the step before": (
        GEMM,
        5,
        (
            "        const int next = k0 + TILE;\n",
            "        const int next = k0 + TILE;\n        __syncthreads();\n",
        ),
    ),
}


@pytest.mark.second
@pytest.mark.sweep(4)
@pytest.mark.parametrize("cheat", KERNELS)
def test_a_kernel_that_cheats_gains_no_step(cheat, tmp_path):
    exercise, step, (old, new) = KERNELS[cheat]
    assert exercise.solution.count(old) == 1
    outcome = of(exercise, exercise.solution.replace(old, new), tmp_path)
    assert not outcome.ok and step not in outcome.passed


def test_there_are_as_many_as_were_asked_for():
    python = len({*ASKS, *READS, *OTHERS}) + len(CONV) + len(GRADCHECK)
    kernels = len(WORDS) + len(UNSAFE) + len(KERNELS)
    assert python >= 23 and kernels >= 12


# ---- a check that has tried nothing -------------------------------------------------------------


@pytest.mark.parametrize(
    "step",
    [
        FunctionStep(1, "pool", []),
        OpStep(1, "MaxPool2d", [], differenced=()),
        KernelStep(1, []),
    ],
    ids=lambda step: type(step).__name__,
)
def test_a_step_that_tries_nothing_is_an_error_and_not_passed(step, tmp_path, monkeypatch):
    exercise = find("map" if isinstance(step, KernelStep) else "pool")
    monkeypatch.setattr(exercise, "steps", [step], raising=False)
    with pytest.raises(ArgumentError, match="step 1: expected at least one call that is tried"):
        of(exercise, exercise.solution, tmp_path)
