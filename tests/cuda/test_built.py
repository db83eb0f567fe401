"""Machine code that was built ahead of time: a GPU's kernels where there is no compiler."""

import numpy as np
import pytest

import tinygraph as tg
from tinygraph import nn
from tinygraph.base.errors import KernelCompileError
from tinygraph.cli import main
from tinygraph.cuda import Kernel, nvrtc
from tinygraph.cuda.nvrtc import library
from tinygraph.cuda.nvrtc.built import FOLDER, runs_on
from tinygraph.cuda.reading.instances import inventory
from tinygraph.cuda.reading.source import Source, kernel_file

SCALE = """// instances (FACTOR=2): scale<float>, scale<double>
#include "times.cuh"
template <typename T>
__global__ void scale(const T* x, T* y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = times(x[i]);
}
"""
TIMES = "template <typename T> __device__ T times(T x) { return FACTOR * x; }\n"


@pytest.fixture
def folder(tmp_path, monkeypatch, capsys):
    """A folder in which scale.cu was built for sm_90, by a machine that has a compiler."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TINYGRAPH_CACHE", str(tmp_path / "there"))
    (tmp_path / "scale.cu").write_text(SCALE)
    (tmp_path / "times.cuh").write_text(TIMES)
    assert main(["kernels", "scale.cu", "--build", "built", "--arch", "sm_90"]) == 0
    out = capsys.readouterr().out
    assert "machine code: 2 files in built, architectures: sm_90" in out
    assert f"{FOLDER}=built" in out
    return tmp_path / "built"


@pytest.fixture
def elsewhere(folder, tmp_path, monkeypatch):
    """Another machine: no compiler, nothing in its cache; but the folder."""
    monkeypatch.setenv("TINYGRAPH_CACHE", str(tmp_path / "here"))
    monkeypatch.setattr(library, "candidates", lambda: iter([]))
    for found in (library.library, library.architectures):
        found.cache_clear()
    monkeypatch.setenv(FOLDER, str(folder))
    return folder


def scale_on_cuda(cupy, dtype="float", **macros):
    x = cupy.asarray(np.arange(5, dtype="f4" if dtype == "float" else "f8"))
    y = cupy.empty(5, x.dtype)
    Kernel("scale.cu", f"scale<{dtype}>", macros or {"FACTOR": 2})(1, 32, x, y, 5)
    return y.get()


@pytest.mark.second
def test_a_launch_needs_no_compiler(elsewhere, rehearsed_cuda):
    with pytest.raises(KernelCompileError, match="library"):
        nvrtc.version()
    for dtype in ("float", "double"):
        np.testing.assert_array_equal(scale_on_cuda(rehearsed_cuda, dtype), [0, 2, 4, 6, 8])
    assert (
        nvrtc.resources(Kernel("scale.cu", "scale<float>", {"FACTOR": 2}).source, *NAME).spills == 0
    )


NAME = "scale<float>", "sm_90"


@pytest.mark.second
def test_ops_need_no_compiler(folder, tmp_path, monkeypatch, rehearsed_cuda):
    files = [str(kernel_file(f"{stem}.cu")) for stem in ("dropout", "random", "sgd")]
    assert main(["kernels", *files, "--build", "built", "--arch", "sm_90"]) == 0
    monkeypatch.setenv("TINYGRAPH_CACHE", str(tmp_path / "here"))
    monkeypatch.setattr(library, "candidates", lambda: iter([]))
    library.library.cache_clear()
    monkeypatch.setenv(FOLDER, str(folder))
    w = tg.Parameter(np.ones(8, "f4"), device="cuda")
    w.grad = tg.dropout(w, 0.0, training=True).value
    tg.optim.SGD([w], lr=0.25).step()
    np.testing.assert_array_equal(w.numpy(), np.full(8, 0.75))


@pytest.mark.second
def test_what_a_program_launches_can_be_built(folder, monkeypatch):
    """Also where no `instances` line names it: a comparison of integers."""
    x = tg.Tensor(np.arange(6, dtype="i4").reshape(2, 3), device="emulator")
    with tg.cuda.recording() as launches:
        tg.less(x, x)
    (launch,) = launches
    names = {(instance.path.name, instance.name) for instance in inventory()}
    assert (launch.kernel.source.path.name, launch.kernel.name) not in names
    launch.kernel.build(folder, "sm_90")
    monkeypatch.setattr(library, "candidates", lambda: iter([]))
    library.library.cache_clear()
    monkeypatch.setenv("TINYGRAPH_CACHE", str(folder / "empty"))
    monkeypatch.setenv(FOLDER, str(folder))
    assert launch.kernel.resources("sm_90").spills == 0


@pytest.mark.second
@pytest.mark.parametrize("compiled", [False, True])
def test_what_the_seed_network_launches_is_among_the_instances(compiled):
    tg.manual_seed(0)
    layers = nn.Conv2d(1, 2, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(338, 10)
    model = nn.Sequential(*layers).to("emulator")
    rule = tg.optim.SGD(model.parameters(), lr=0.1)
    images, labels = np.ones((3, 1, 28, 28), "f4"), np.arange(3)

    def step(x, y):
        loss = tg.softmax_cross_entropy(model(x), y)
        rule.zero_grad()
        loss.backward()
        rule.step()

    run = tg.compile(step) if compiled else step
    with tg.cuda.recording() as launches:
        for _ in range(3):
            run(tg.Tensor(images, device="emulator"), tg.Tensor(labels, device="emulator"))
    sources = [(Source.read(i.path, i.defines), i.name) for i in inventory()]
    known = {(source.path, source.defines, name) for source, name in sources}
    launched = {(k.source.path, k.source.defines, k.name) for k in (x.kernel for x in launches)}
    assert len(launched) > 4 and launched <= known


@pytest.mark.second
def test_what_was_not_built_is_told_with_the_way_out(elsewhere, rehearsed_cuda):
    words = (
        rf"libnvrtc.* got none, and no machine code of this kernel in {FOLDER}=.*/built\. Way out"
    )
    with pytest.raises(KernelCompileError, match=words + ".*kernels --build DIR"):
        scale_on_cuda(rehearsed_cuda, FACTOR=3)


@pytest.mark.second
def test_a_header_that_has_changed_since_is_not_passed_over(elsewhere, tmp_path, rehearsed_cuda):
    assert scale_on_cuda(rehearsed_cuda)[1] == 2
    (tmp_path / "times.cuh").write_text(TIMES.replace("FACTOR *", "2 * FACTOR *"))
    with pytest.raises(KernelCompileError, match="no machine code of this kernel"):
        scale_on_cuda(rehearsed_cuda)


@pytest.mark.second
def test_a_gpu_runs_machine_code_of_older_ones_of_its_generation(elsewhere, rehearsed_cuda):
    source = Kernel("scale.cu", "scale<float>", {"FACTOR": 2}).source
    assert nvrtc.architecture_for(source, "scale<float>", "sm_95") == "sm_90"
    for gpu in ("sm_89", "sm_100"):
        assert "sm_90" not in runs_on(gpu)
        with pytest.raises(KernelCompileError, match="libnvrtc"):
            nvrtc.architecture_for(source, "scale<float>", gpu)


@pytest.mark.second
@pytest.mark.stand_in
def test_a_driver_that_refuses_it_is_told_without_a_compiler(
    elsewhere, rehearsed_cuda, monkeypatch
):
    def refuse(self, cubin):
        raise rehearsed_cuda.cuda.driver.CUDADriverError("CUDA_ERROR_INVALID_IMAGE")

    monkeypatch.setattr(rehearsed_cuda.cuda.Module, "load", refuse)
    with pytest.raises(KernelCompileError, match=r"sm_90 from NVRTC \d+\.\d+: CUDA_ERROR_INVALID"):
        scale_on_cuda(rehearsed_cuda)


def test_building_again_with_another_compiler_takes_its_code(folder, monkeypatch, capsys):
    (file, _) = sorted(folder.iterdir())
    before = file.read_bytes()
    monkeypatch.setenv(FOLDER, str(folder))
    file.write_bytes(b"of another compiler")
    assert main(["kernels", "scale.cu", "--build", "built", "--arch", "sm_90"]) == 0
    assert len(list(folder.iterdir())) == 2 and file.read_bytes() == before


def test_what_does_not_compile_is_an_error(folder, tmp_path, capsys):
    (tmp_path / "broken.cu").write_text(
        "__global__ void broken(float* x)\n{\n    *x = missing;\n}\n"
    )
    assert main(["kernels", "broken.cu", "--build", "built"]) == 1
    captured = capsys.readouterr()
    assert "broken.cu:3" in captured.err and "0 files" in captured.out


def test_a_folder_that_cannot_be_made(folder, capsys):
    assert main(["kernels", "scale.cu", "--build", "scale.cu/built"]) == 2
    assert "--build: expected a folder to write to" in capsys.readouterr().err
