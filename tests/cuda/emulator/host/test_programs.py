"""Programs as people have them, run unchanged: what they print is known, and nothing is found."""

import pytest

from tests.cuda.emulator.host.running import PROGRAMS, built, finding, ran
from tinygraph.base.errors import KernelCompileError
from tinygraph.cuda.emulator.host.building import build
from tinygraph.cuda.reading.source import Source

# Each counted by hand (reduction: 1428 times 0 + ... + 6, and 0 + 1 + 2 + 3), or by a plain loop of
# the program itself (matrix_product).
EXPECTED = {
    "vector_add": "1000 elements, 0 wrong, the last is 2997\n",
    "matrix_product": "trace 5 5, expected 5\n",
    "reduction": "tiles: 29994\ntogether: 29994, no error\n",
    "histogram": "448 448 448 448 448 448 448 448 outside 512, cudaSuccess\n",
    "saxpy": "largest error: 0\nblock 0 thread 0\nblock 0 thread 1\n",
    "linked_lists": "0 wrong, no error\n",
    "dot_product": "dot product 1536.0, timed\n",  # 512 * (0 + 1 + 2 + 3) / 2
}


def test_every_program_is_run():
    assert {path.stem for path in PROGRAMS.glob("*.cu")} == set(EXPECTED)


FIRST = ("vector_add", "reduction")  # the others are compiled in the second tier alone
NAMES = [n if n in FIRST else pytest.param(n, marks=pytest.mark.second) for n in EXPECTED]


@pytest.mark.second
@pytest.mark.parametrize("name", NAMES)
def test_programs_print_what_they_should(name):
    done, out, err = ran(PROGRAMS / f"{name}.cu")
    assert (out, err) == (EXPECTED[name], "")
    assert done.status == 0 and done.ok and not done.notes


@pytest.mark.second
def test_a_program_without_the_checker():
    done, out, _ = ran(PROGRAMS / "vector_add.cu", "70000", checked=False)
    assert out == "70000 elements, 0 wrong, the last is 209997\n" and done.status == 0


# ---- mistakes ------------------------------------------------------------------------------------


def changed(name, old, new):
    text = (PROGRAMS / f"{name}.cu").read_text()
    assert text.count(old) == 1
    return text.replace(old, new)


@pytest.mark.second
def test_an_index_beyond_memory_is_named_as_the_program_names_it():
    text = changed("vector_add", "if (i < n)", "if (i <= n)")
    done, _, err = ran(text)
    report, found = finding(done)
    assert report.kernel == "vector_add"
    assert (found.kind, found.array, found.index) == ("out-of-bounds", "d_a", 1000)
    assert found.text == "if (i <= n) c[i] = a[i] + b[i];"
    assert found.line == 1 + text[: text.index("if (i <= n)")].count("\n")
    assert "an illegal memory access" in err and done.status == 1  # the program saw the error, too


@pytest.mark.second
def test_a_race_in_a_program():
    old = "        __syncthreads();\n        for (int i = 0; i < TILE"
    done, _, _ = ran(changed("matrix_product", old, "        for (int i = 0; i < TILE"))
    assert "race" in {f.kind for report in done.reports for f in report.findings}
    assert {report.kernel for report in done.reports} == {"product<TILE>"}


@pytest.mark.second
def test_memory_of_the_host_is_none_for_a_kernel():
    done, _, _ = ran(changed("vector_add", "(d_a, d_b, d_c, n);", "(a.data(), d_b, d_c, n);"))
    _, found = finding(done)
    assert found.kind == "out-of-bounds" and "memory of the host" in found.message


@pytest.mark.second
def test_memory_of_the_device_is_none_for_the_host():
    done, out, err = ran(changed("vector_add", "c[n - 1]);", "d_c[n - 1]);"))
    assert out == "" and done.status == 128 + 11
    assert "d_c, which is memory of the device: copy it with cudaMemcpy" in err
    assert any("d_c[n - 1]);" in note for note in done.notes)


@pytest.mark.second
def test_what_nobody_wrote_is_no_result():
    done, _, _ = ran(changed("vector_add", "(d_a, d_b, d_c, n);", "(d_a, d_b, d_c, n - 3);"))
    _, found = finding(done)
    assert (found.kind, found.array, found.index) == ("unwritten-output", "d_c", 997)
    assert found.text.startswith("CHECK(cudaMemcpy(c.data()") and "12 of which" in found.message


@pytest.mark.second
def test_memory_that_was_given_back():
    old = "    dim3 blockDim(256)"
    done, _, _ = ran(changed("vector_add", old, "    CHECK(cudaFree(d_b));\n" + old))
    _, found = finding(done)
    assert (found.kind, found.array) == ("out-of-bounds", "d_b")
    assert "given back with cudaFree" in found.message


@pytest.mark.second
@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("blockDim(256)", "blockDim(2048)", "block of 2048 x 1 x 1 threads"),
        ("<<<gridDim, blockDim>>>", "<<<gridDim, blockDim, 60000>>>", "60000 bytes of dynamic"),
        ("d_b, b.data(), bytes", "d_b, b.data(), 2 * bytes", "8000 bytes from byte 0 of d_b"),
        ("(c.data(), d_c, bytes,", "(d_c, c.data(), bytes,", "memory of the host, d_c is"),
        ("CHECK(cudaFree(d_b));", "CHECK(cudaFree(d_a));", "given back already"),
        ("cudaMalloc(&d_c, bytes)", "cudaMalloc(&d_c, bytes << 40)", "out of memory"),
    ],
)
def test_calls_that_a_gpu_would_refuse(old, new, words):
    done, _, err = ran(changed("vector_add", old, new))
    assert words in err and done.status == 1 and done.ok


# ---- the process ---------------------------------------------------------------------------------

KERNEL = "#include <cstdio>\n#include <cstdlib>\n__global__ void k(int *x) { x[0] = 1; }\n"


@pytest.mark.second
@pytest.mark.parametrize(
    ("body", "status", "note"),
    [
        ("exit(7);", 7, ""),
        ("abort();", 128 + 6, "SIGABRT"),
        ("*(volatile int *)0 = 1;", 128 + 11, "SIGSEGV"),
        ("for (volatile int i = 0;; i = i + 1);", 128 + 9, "not done after 1 s"),
    ],
)
def test_how_a_program_may_end(body, status, note):
    done, _, _ = ran(
        f"{KERNEL}int main() {{ {body} return 0; }}", timeout=1 if "for" in body else 60
    )
    assert done.status == status
    assert note in " ".join(done.notes) and bool(done.notes) == bool(note)


@pytest.mark.second
def test_an_assertion_in_a_kernel():
    text = f"""#include <cassert>
{KERNEL}__global__ void a(int n) {{ assert(threadIdx.x < n); }}
int main() {{
    a<<<1, 32>>>(30);
    printf("%s", cudaGetErrorString(cudaDeviceSynchronize()));
}}"""
    done, out, err = ran(text)
    assert out == "device-side assert triggered"
    assert "thread: [30,0,0] assertion failed: threadIdx.x < n" in err.replace("tg_", "")
    assert done.status == 0 and done.ok


@pytest.mark.second
def test_a_kernel_that_cannot_wait_for_the_grid():
    text = f"""#include <cooperative_groups.h>
{KERNEL}__global__ void g() {{ cooperative_groups::this_grid().sync(); }}
__global__ void h() {{ if (blockIdx.x) cooperative_groups::this_grid().sync(); }}
int main(int argc, char **) {{
    if (argc > 1) cudaLaunchCooperativeKernel((void *)h, 2, 32, NULL);
    else g<<<2, 32>>>();
    cudaError_t error = cudaLaunchCooperativeKernel(g, 1000000, 32, NULL);
    printf("%s", cudaGetErrorName(error));
}}"""
    done, out, err = ran(text)
    assert "cudaLaunchCooperativeKernel" in err and out == "cudaErrorIllegalInstruction"
    done, out, _ = ran(text, "1")
    _, found = finding(done)
    assert found.kind == "deadlock" and "block (0,0,0) has ended" in found.message
    assert out == "cudaErrorLaunchTimeout"


@pytest.mark.second
def test_the_watchdog_takes_no_processor_from_the_run_time():
    text = f"""{KERNEL}__global__ void rounds(int *x, int n) {{
    int v = threadIdx.x;
    for (int i = 0; i < n; i++) v = __shfl_xor_sync(0xffffffffu, v, 1 << i % 5);
    x[threadIdx.x] = v;
}}
int main() {{
    int *d_x, x[64], wrong = 0;
    cudaMalloc(&d_x, sizeof x);
    rounds<<<1, 64>>>(d_x, 400000);
    cudaMemcpy(x, d_x, sizeof x, cudaMemcpyDeviceToHost);
    for (int i = 0; i < 64; i++) wrong += x[i] != i;
    printf("%d wrong", wrong);
}}"""  # 80,000 times each bit: an even number of turns
    done, out, _ = ran(text, checked=False)
    assert out == "0 wrong" and not done.notes


WAITING = f"""{KERNEL}__global__ void wait(volatile int *flags) {{
    const int n = blockIdx.x;
    while (flags[1 - n] == 0) {{ }}
    flags[n] = 1;
}}
int main() {{
    int *flags;
    cudaMallocManaged(&flags, 2 * sizeof *flags);
    flags[0] = flags[1] = 0;
    wait<<<2, 1>>>(flags);
    printf("%s", cudaGetErrorName(cudaDeviceSynchronize()));
}}"""


@pytest.mark.second
def test_blocks_that_wait_for_each_other(monkeypatch):
    monkeypatch.setenv("TINYGRAPH_KERNEL_TIMEOUT", "0.3")
    done, out, _ = ran(WAITING)
    _, found = finding(done)
    assert (found.kind, found.line) == ("deadlock", 6) and out == "cudaErrorLaunchTimeout"
    assert "block (0,0,0) waits for flags[1] to change and block (1,0,0) for" in found.message


@pytest.mark.second
def test_a_program_is_sent_to_the_checker_by_its_own_option():
    text = f"""{KERNEL}int main() {{
    k<<<1, 1>>>((int *)64);
    return cudaDeviceSynchronize() != cudaSuccess;
}}"""
    done, _, _ = ran(text, checked=False)
    (note,) = done.notes
    assert "Way out: run it without --no-check" in note and "kernel.check" not in note


@pytest.mark.second
def test_the_checker_does_not_send_to_itself():
    """It was on, but it does not see into the C library."""
    text = f"""#include <cstring>
{KERNEL}__global__ void length(int *x) {{ x[0] = strlen((const char *)64); }}
int main() {{
    int *x;
    cudaMalloc(&x, sizeof *x);
    length<<<1, 1>>>(x);
    return cudaDeviceSynchronize() == cudaSuccess;
}}"""
    done, _, _ = ran(text)
    (note,) = done.notes
    assert "Way out: see that line" in note and "--no-check" not in note
    assert done.status == 0 and not done.ok


@pytest.mark.second
@pytest.mark.parametrize("checked", [True, False])
@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("k<<<1, 1>>>(x);", "a launch inside of a kernel"),
        ("cg::this_grid().sync();", "whose blocks do not run together"),
        ("cg::tiled_partition(cg::this_thread_block(), 3);", "has tiles of"),
    ],
)
def test_a_program_fails_whose_kernel_the_emulator_has_refused(body, words, checked):
    """Though it looks at no error, and says itself that all is well."""
    text = f"""#include <cooperative_groups.h>
{KERNEL}namespace cg = cooperative_groups;
__global__ void parent(int *x) {{ {body} }}
int main() {{
    int *x;
    cudaMalloc(&x, sizeof *x);
    parent<<<1, 1>>>(x);
    cudaDeviceSynchronize();
}}"""
    done, _, err = ran(text, checked=checked)
    (note,) = done.notes
    assert done.status == 0 and not done.ok and not done.reports
    assert words in err and words in note and "Way out: change that line" in note


@pytest.mark.second
@pytest.mark.parametrize("body", ["__trap();", "assert(x == nullptr);"])
def test_a_kernel_that_stops_itself_is_judged_by_the_program(body):
    text = f"""#include <cassert>
{KERNEL}__global__ void stops(int *x) {{ {body} }}
int main() {{
    int *x;
    cudaMalloc(&x, sizeof *x);
    stops<<<1, 1>>>(x);
    return cudaDeviceSynchronize() == cudaSuccess;
}}"""
    done, _, _ = ran(text)
    assert done.status == 0 and done.ok and not done.notes


@pytest.mark.second
def test_a_program_that_is_not_linked(tmp_path):
    (tmp_path / "a.cu").write_text("int twice(int x) { return 2 * x; }\nint main() {}\n")
    (tmp_path / "b.cu").write_text("int twice(int x) { return x + x; }\n")
    sources = [Source.read(tmp_path / name) for name in ("a.cu", "b.cu")]
    with pytest.raises(KernelCompileError, match="twice: two files of the program define it"):
        build(sources, True)
    (tmp_path / "b.cu").write_text('asm(".symver x, y@@Z");\n')
    with pytest.raises(KernelCompileError, match="does not (link|compile) it"):
        build([Source.read(tmp_path / name) for name in ("a.cu", "b.cu")], True)


@pytest.mark.second
def test_of_one_device_there_are_no_pairs():
    done, out, _ = ran(f"""{KERNEL}int main() {{
    int value = 7;
    cudaError_t error = cudaDeviceGetP2PAttribute(&value, cudaDevP2PAttrAccessSupported, 0, 0);
    printf("%s %d", cudaGetErrorName(error), value);
}}""")
    assert done.ok and out == "cudaErrorInvalidDevice 0"


@pytest.mark.second
@pytest.mark.parametrize(
    ("line", "named"),
    [
        ('asm("mov.u32 %0, %%laneid;" : "=r"(x[0]));', ": mov.u32: the emulator has no PTX"),
        ('asm("add.f32 %0, %0, %0;" : "+f"(*(float *)x));', ": asm: the emulator has no PTX"),
    ],
)
def test_assembly_of_a_gpu_is_refused(line, named):
    with pytest.raises(KernelCompileError, match=f":1{named}"):
        built(f"__global__ void lane(int *x) {{ {line} }}\nint main() {{}}")
