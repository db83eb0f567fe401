"""PyTorch's places of few names, and numpy's: the way out (read by torch_names.py)."""

from __future__ import annotations

HERE = {  # a place of PyTorch's, and its name here
    "autograd": "tg.autograd",
    "cuda": "tg.cuda",
    "nn.init": "tg.nn.init",
    "nn.utils": "tg.nn.utils",
    "optim.lr_scheduler": "tg.optim.lr_scheduler",
    "testing": "tg.testing",
}

ABSENT = {
    "autograd": """
    Function: a subclass of tg.Op, with forward and backward: docs/add_an_op.md
    Variable: a Tensor: tg.Tensor(data, requires_grad=True)
    gradcheck: tg.testing.gradcheck
    gradgradcheck functional: gradients have no graph of their own: write the first derivative as
        ops, and differentiate that
    detect_anomaly set_detect_anomaly: with tg.detect_anomaly(): ...
    no_grad enable_grad inference_mode set_grad_enabled: with tg.no_grad(): ...
    profiler: tinygraph profile RECIPE
    forward_ad: backward alone: tg.autograd.grad
""",
    "cuda": """
    current_device set_device get_device_name get_device_properties: tinygraph doctor says what is
        there; a program uses one GPU, device='cuda'
    empty_cache memory_allocated max_memory_allocated memory_reserved memory_summary mem_get_info
        reset_peak_memory_stats: cupy.get_default_memory_pool() has free_all_blocks and used_bytes
    synchronize: x.item() and x.numpy() wait; tinygraph profile RECIPE times kernels
    Stream Event stream current_stream default_stream: launches stand in one line, as in a program
    amp: float32 throughout; tg.set_float32_matmul_precision('high')
    manual_seed manual_seed_all seed: tg.manual_seed(seed), for all devices
    get_rng_state set_rng_state: tg.manual_seed(seed)
    CUDAGraph graph make_graphed_callables: tg.cuda.capture(step)
    is_bf16_supported: float32 or float64 throughout
    nccl: one process and one device
""",
    "nn.init": """
    dirac_ eye_ sparse_: p.value = array
    trunc_normal_: p.value = np.clip(array, a, b), of normal numbers
    orthogonal_: p.value = np.linalg.qr(array)[0].astype(p.dtype)
    constant normal xavier_normal xavier_uniform kaiming_normal kaiming_uniform orthogonal
        dirac eye sparse: the name with _ at its end
""",
    "nn.utils": """
    rnn: pad sequences to one length, tg.stack them, and leave the rest out of the loss by a mask
    spectral_norm weight_norm parametrize parametrizations remove_spectral_norm remove_weight_norm:
        compute the weight in forward, from a Parameter of its own
    prune: p.value = p.value * mask
    clip_grad clip_grads_with_norm_ get_total_norm: clip_grad_norm_ returns the norm
    convert_parameters: parameters_to_vector, vector_to_parameters
    fuse_conv_bn_eval fuse_linear_bn_eval fusion: tg.compile folds nothing in; eval() is enough
    stateless: load_state_dict
    skip_init: the layer itself; its weights are drawn at once
""",
    "optim.lr_scheduler": "",
    "testing": """
    assert_close assert_allclose: np.testing.assert_allclose(x.numpy(), y.numpy())
    make_tensor: tg.randn(shape), or tg.testing.strategies
""",
}

NUMPY = {
    "numpy": """
    array: tg.tensor
    expand_dims: tg.unsqueeze
    copy: x.clone()
    invert: ~x
    power: x ** y
    mod: x % y
    divmod: x // y and x % y
    around rint: tg.round
    fabs: tg.abs
    repeat: tg.repeat_interleave
    identity: tg.eye
    tri: tg.tril(tg.ones((n, m)))
    ptp: tg.amax(x) - tg.amin(x)
    average: tg.mean, or (w * x).sum() / w.sum()
    array_equal: (x == y).numpy().all()
    array_split: tg.tensor_split
    permute_dims: tg.permute
    matrix_transpose: x.mT
    rollaxis: tg.moveaxis
    row_stack: tg.vstack
    cumulative_sum: tg.cumsum
    append insert delete: tg.cat
    ndim shape size: x.ndim, x.shape, x.size
    savez: tg.save
""",
    "ndarray": """
    copy: x.clone()
    fill: tg.full_like(x, value)
    tobytes tofile flat strides: of the array, x.numpy()
    conjugate: floats have no imaginary part
    compress choose partition: HOST
    resize: x.reshape
""",
}
