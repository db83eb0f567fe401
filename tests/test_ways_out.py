"""Each name of PyTorch's that is not here has an answer, and the formulas in answers compute it."""

import functools
import importlib
import inspect
import re

import numpy as np
import pytest

import tinygraph as tg
from tests.test_coming_from import MODULES
from tinygraph.interop import torch_names as coming_from


@pytest.fixture(scope="module")
def torch():
    return pytest.importorskip("torch", reason="compares with PyTorch, which is not installed")


# What only PyTorch's own files call, or what has no meaning beside its compiler and its allocator.
INTERNAL = re.compile(
    "[Ss]ym_?[A-Zbfimns]|.*_copy$|parse_|import_ir|Script|host_memory|.*_as_nested_dict$|sparse_resize"
    "|reset_(accum|peak_host|max_memory_cached)|caching_allocator|[gs]et_(sync_debug|allocator|gencode)"
)
INTERNAL_NAMES = """
    AggregationType DispatchKey GreenContext LinearCrossEntropyOptions NestedIOFunction Optimizer
    ScalingType SwizzleType Tag bisect_right change_current_allocator check_error classes clock_rate
    common_types compiled_with_cxx11_abi cpp cudart current_blas_handle current_solver_handle
    device_memory_used enforce_grad_layout_policy factory_kwargs fractional_max_pool2d_with_indices
    fractional_max_pool3d_with_indices gds get_per_process_memory_fraction get_stream_from_external
    grad graph graph_settings green_contexts handle_torch_function hash_tensor init init_num_threads
    ipc_collect is_storage is_tensor_like is_tf32_supported list_gpu_processes
    merge_type_from_type_comment monitor native_channel_shuffle power_draw profiler_legacy
    profiler_util quasirandom return_types set_multithreading_enabled sparse
    swap_in_optimizer_params_and_state temperature thread_safe_generator torch_version tunable
    unify_type_list use_mem_pool windows"""
ALL_MODULES = MODULES | {
    "optim.lr_scheduler": ["torch.optim.lr_scheduler"],
    "nn.utils": ["torch.nn.utils"],
    "nn.init": ["torch.nn.init"],
    "autograd": ["torch.autograd"],
    "cuda": ["torch.cuda"],
    "testing": ["torch.testing"],
}


def is_public(there, name):
    """Whether users may know a name: a module, or a function, class or method with a text."""
    found = getattr(there, name)
    if name[0] == "_" or name in INTERNAL_NAMES.split() or INTERNAL.match(name):
        return False
    if inspect.ismodule(found):
        return found.__name__.startswith("torch.")
    if inspect.isclass(there):
        return bool(found.__doc__)
    made_in = getattr(found, "__module__", None) or "torch"
    ours = made_in.startswith("torch") and not made_in.startswith(("torch._C", "torch._jit"))
    return callable(found) and bool(found.__doc__) and ours and "torch._ops" not in made_in


@pytest.mark.parametrize("place", ALL_MODULES)
def test_each_public_name_of_pytorchs_has_an_answer(place, torch):
    """It is here, or the error says what to write."""
    importlib.import_module("torch.optim.swa_utils")  # modules that torch itself does not load
    importlib.import_module("torch.utils.data.distributed")
    way = {**coming_from.HERE, **coming_from.SMALL}[place].split(".")
    ours = functools.reduce(getattr, way[way[0] == "tg" :], tg)
    silent = []
    there = torch.Tensor if place == "Tensor" else importlib.import_module(ALL_MODULES[place][0])
    for name in dir(there):
        if is_public(there, name):
            try:
                getattr(ours, name)
            except AttributeError as error:
                silent += [] if "Way out" in str(error) else [name]
    assert not silent


A, B = np.float32([[1, 2, 4], [3, 5, -6]]), np.float32([[2, 0.5, 3], [7, 1, 2]])
FORMULAS = [  # a row that is a formula, PyTorch's arguments, and what they are called in the row
    ("addr", (A @ A.T, B[:, 0], A[:, 1]), {"b": A @ A.T, "x": B[:, 0], "y": A[:, 1]}),
    ("addmm", (A @ A.T, A, B.T), {"b": A @ A.T, "x": A, "y": B.T}),
    ("bitwise_left_shift", (A.astype(int), 2), {"x": A.astype(int), "n": 2}),
    ("bitwise_right_shift", (A.astype(int), 1), {"x": A.astype(int), "n": 1}),
    ("cdist", (A, B), {"x": A, "y": B}),
    ("corrcoef", (A,), {"x": A}),
    ("cov", (A,), {"x": A, "n": 3}),
    ("cumulative_trapezoid", (A,), {"y": A, "dx": 1.0}),
    ("diag_embed", (A,), {"x": A, "n": 3}),
    ("dist", (A, B), {"x": A, "y": B}),
    ("fmod", (A, B), {"x": A, "y": B}),
    ("frac", (B,), {"x": B}),
    ("isneginf", (A * np.inf,), {"x": A * np.inf}),
    ("lerp", (A, B, 0.25), {"x": A, "y": B, "weight": 0.25}),
    ("logaddexp", (A, B), {"x": A, "y": B}),
    ("nanmean", (np.where(A > 3, np.nan, A),), {"x": np.where(A > 3, np.nan, A)}),
    ("pairwise_distance", (A, B), {"x": A, "y": B}),
    ("renorm", (A, 2, 0, 1.0), {"x": A, "maxnorm": 1.0}),
    ("rot90", (A,), {"x": A}),
    ("trapz", (A,), {"y": A, "dx": 1.0}),
    ("xlogy", (B - 0.5, B), {"x": B - 0.5, "y": B}),
]


@pytest.mark.parametrize(("name", "args", "names"), FORMULAS, ids=[f[0] for f in FORMULAS])
def test_a_way_out_that_is_a_formula_computes_the_same(name, args, names, torch):
    tensors = {n: tg.tensor(v) if isinstance(v, np.ndarray) else v for n, v in names.items()}
    *before, last = (
        coming_from.rows("absent")[f"torch.{name}"].partition(", for dim")[0].split("; ")
    )
    scope = {"tg": tg, **tensors}
    for line in before:
        exec(line, scope)
    given = [torch.tensor(a) if isinstance(a, np.ndarray) else a for a in args]
    expected = getattr(torch, name)(*given).numpy()
    found = eval(last.partition(", with")[0], scope).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
