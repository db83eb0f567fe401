"""PyTorch's names that mean something else here, and those that are not here, with the way out.

A name that stands neither in OTHER nor in ABSENT nor in OURS, and that a place has, means what it
means in PyTorch.  The page "Coming from PyTorch" is made from this (docs/names_table.py), and so
is the error of a name that does not exist, which knows numpy's too; nothing else loads it.

    torch.optim.SGD        place "optim"       torch.optim, its lr_scheduler, and nn.utils
    torch.utils.data.X     place "utils.data"  tg.data
"""

from __future__ import annotations

from tinygraph.base import nearest
from tinygraph.interop import rare_names, small_places

HERE = {  # a place of PyTorch's, and its name here
    "torch": "tg",
    "Tensor": "Tensor",
    "nn": "tg.nn",
    "nn.functional": "tg.nn.functional",
    "optim": "tg.optim",
    "utils.data": "tg.data",
}

_OFTEN = {  # sentences that several rows end in
    "LATER": "add it as an op, in a file of its own: docs/add_an_op.md",
    "HOST": "on the host, where the graph ends: numpy on x.numpy()",
    "WRITE": "a new node: x = x + y, or x += y; a parameter is written so under tg.no_grad()",
}


def _rows(texts: dict[str, str]) -> dict[str, str]:
    """Rows `name name: sentence` of some places; a line that is indented further goes on."""
    rows = {}
    for place, text in texts.items():
        for row in text.replace("\n        ", " ").strip().splitlines():
            names, _, sentence = row.strip().partition(": ")
            for word, often in _OFTEN.items():
                sentence = sentence.replace(word, often)
            rows.update({f"{place}.{name}": sentence for name in names.split()})
    return rows


OTHER = _rows(
    {
        "torch": """
    amax amin: where the result is NaN, the NaNs among the elements share the gradient, as they do
        for `max` in PyTorch
    Graph: the graph below some tensors, which can be run again
    Tensor: a leaf made of numbers, `Tensor(data, requires_grad, dtype, device, name)`; never of
        sizes; arrays and numpy's numbers keep their dtype, lists of Python's numbers are float32;
        `Tensor(5.0)` is a number
    batch_norm: without `cudnn_enabled`
    binary_cross_entropy_with_logits kl_div: as in `nn.functional`
    cosine_similarity: the gradient where a vector is shorter than `eps` is that of the formula
    compile: makes a plan of a training step, and has options of its own: see the page on plans
    Generator: draws other numbers than PyTorch from the same seed, the same ones on every device
    conv_transpose1d conv_transpose2d: `output_padding` is less than the stride
    cuda: the kernels of this package and `capture`; no streams and no memory statistics
    device: a function; devices compare with their names: `x.device == 'cuda'`
    embedding: indices first, then the weight, as in `nn.functional`
    equal: compares element by element, as in numpy; one bool: `(x == y).numpy().all()`
    heaviside: `value` is one number
    group_norm: without `cudnn_enabled`
    instance_norm: `(x, weight, bias, eps)`, without running statistics
    load: reads what `tg.save` and safetensors wrote; files of PyTorch where it is installed; a
        path, no open file
    maximum minimum: where both are equal, the first one has the gradient; PyTorch halves it
    manual_seed: draws other numbers than PyTorch from the same seed
    mean: of integers and bools too, in float32
    normal: `mean` and `std` are numbers; of tensors, `mean + std * tg.randn(size)`
    promote_types result_type: uint16, uint32 and uint64 beside other integers are as in numpy;
        arrays of numpy without axes are tensors, its scalars are Python's numbers
    save: writes a safetensors file of arrays and plain values, never a pickle; to a path
    sign: of NaN is NaN; PyTorch says 0
    testing: gradient checks, and strategies for tests of ops
""",
        "Tensor": """
    amax amin: where the result is NaN, the NaNs among the elements share the gradient
    backward: without `inputs`; `create_graph=True` is refused: there are no second derivatives
    data: a leaf on the same memory; to assign it writes that memory, of the same shape
    device: compares with its name: `x.device == 'cpu'`
    dtype: numpy's
    heaviside: `value` is one number
    equal: compares element by element, as in numpy
    grad: an array, no Tensor: `w.grad = None` in place of `w.grad.zero_()`; a Tensor that is
        assigned becomes its array
    maximum minimum: where both are equal, the first one has the gradient; PyTorch halves it
    numpy: also of a tensor that requires a gradient, as `np.asarray(x)`
    name: a label for pictures and errors, and for feeding a graph
    retain_grad: returns the tensor
    shape: a tuple of ints
    sign: of NaN is NaN; PyTorch says 0
    size: a count too, as in numpy: `x.size` is an int, `x.size()` the shape
""",
        "nn": """
    BatchNorm1d BatchNorm2d: `momentum` is a number, never None
    Buffer: a leaf that keeps its shape and dtype
    ConvTranspose1d ConvTranspose2d: `output_padding` is less than the stride
    InstanceNorm1d InstanceNorm2d: of batches; without running statistics
    LSTM: `proj_size` is 0
    Module: lists of layers must be a `ModuleList`; `super().__init__()` may be left out
    Parameter: keeps its shape and dtype; `Parameter(data, requires_grad, dtype, device, name)`
    Upsample: nearest, nearest-exact, linear and bilinear, at exact places, where PyTorch rounds
        them to float32
""",
        "nn.functional": """
    log_softmax softmax: without `dim`, the last axis; PyTorch warns, and takes axis 1 of four;
        `dtype` stands third, as in `torch.softmax`
""",
        "optim": """
    Optimizer: a subclass writes `update`: see its page
    clip_grad_norm: `nn.utils.clip_grad_norm_` of PyTorch
""",
        "utils.data": """
    DataLoader: an array dataset (`mnist`, `ArrayDataset`) yields numpy arrays, all others Tensors;
        `seed=` fixes the order; workers are spawned; no `batch_size=None`
    Dataset: no `a + b`: `ConcatDataset([a, b])`
    RandomSampler SubsetRandomSampler WeightedRandomSampler: the same order each time, from `seed`
        and the epoch; a DataLoader asks for each epoch, by hand `sampler.for_epoch(1)` does
    default_collate: a tuple of samples stays a tuple
    random_split: cuts other parts from the same seed
""",
    }
)

OURS = {  # names that PyTorch has not
    "torch": """Op Parameter Spec adaptive_avg_pool2d astype avg_pool2d binary_cross_entropy
        col2im conv2d_relu_max_pool2d cross_entropy data detect_anomaly elu errors expand gelu
        getitem global_avg_pool2d glu gru_layer half_squared_error hardsigmoid hardswish
        hardtanh huber_loss im2col interpolate l1_loss leaky_relu linear logsigmoid lstm_layer
        mish mse_loss
        nll_loss one_hot pad plan relu6 rnn_layer scaled_dot_product_attention show silu
        smooth_l1_loss softmax_cross_entropy softplus softsign training""",
    "Tensor": "astype hooks inputs keeps_grad made_at needs op saved spec value written",
    "nn": "GlobalAvgPool2d HalfSquaredError Residual",
    "nn.functional": """astype col2im conv2d_relu_max_pool2d expand getitem global_avg_pool2d
        gru_layer half_squared_error im2col lstm_layer rnn_layer softmax_cross_entropy""",
    "optim": "LinearWarmup Lion Schedule clip_grad_value",
    "utils.data": """Compose ArrayDataset BatchedDataset CacheWarning Draws ImageFolder Transform
        TextWindows TransformedDataset cached cifar10 compose datasets degrade digits
        horizontal_flip image_folder load mnist random_crop read_idx read_text splice
        super_resolution""",
}

ABSENT = _rows(
    {
        "torch": """
    tensordot: tg.einsum
    inner: tg.einsum('...k, ...k', x, y)
    ger: tg.outer(x, y)
    addmm baddbmm addbmm addmv: b + x @ y
    addcmul: x + value * a * b
    addcdiv: x + value * a / b
    lerp: x + weight * (y - x)
    dist: tg.norm(x - y)
    t: x.T
    numel: x.numel()
    clamp_min: tg.clamp(x, min=...)
    clamp_max: tg.clamp(x, max=...)
    isclose allclose: np.allclose(x.numpy(), y.numpy())
    index_select take take_along_dim: x[:, indices], or tg.gather(x, dim, indices)
    select narrow: indexing: x[:, i], x[:, start : start + length]
    scatter scatter_add scatter_reduce index_add index_copy index_fill index_put: tg.where(mask,
        a, b); the gradient of x[indices] and of tg.gather adds up so
    masked_scatter: tg.where(mask, values, x), where values has a place for each element of x
    masked_select nonzero argwhere unique unique_consecutive bincount histc: HOST; shapes of a
        graph do not depend on numbers
    kthvalue: tg.sort(x, dim).values[..., k - 1]
    msort: tg.sort(x, 0).values
    median: tg.sort(x, dim).values[..., (n - 1) // 2], with n = x.shape[dim], the last axis
    quantile mode: np.quantile(x.numpy(), q), or elements of tg.sort(x, dim).values
    searchsorted bucketize: HOST
    fliplr flipud: tg.flip(x, 1), tg.flip(x, 0)
    rot90: tg.flip(x, 1).transpose(0, 1)
    ravel: tg.flatten
    fmod: x - y * tg.trunc(x / y)
    frac: x - tg.trunc(x)
    fmax fmin: tg.maximum, tg.minimum, where a NaN propagates
    isin vander unravel_index histogram gcd lcm: HOST
    dstack column_stack: tg.stack or tg.cat, along an axis
    atleast_1d atleast_2d atleast_3d: x.reshape
    hsplit vsplit dsplit: tg.tensor_split(x, sections, dim)
    broadcast_shapes: np.broadcast_shapes
    can_cast: np.can_cast
    deg2rad: x * (math.pi / 180)
    rad2deg: x * (180 / math.pi)
    nansum: tg.where(x != x, 0.0, x).sum()
    positive: x itself
    conj real imag angle: floats have no imaginary part
    copysign frexp ldexp nextafter signbit logaddexp2: LATER
    cov: d = x - x.mean(dim=1, keepdim=True); d @ d.T / (n - 1)
    corrcoef: d = x - x.mean(dim=1, keepdim=True); d = d / d.norm(dim=1, keepdim=True); d @ d.T
    backends: there is nothing to set: every op gives the same bits at every run
    tril_indices triu_indices meshgrid cartesian_prod combinations: the function of numpy, for
        indices have no gradient
    cumprod: x.log().cumsum(dim).exp(), above 0
    cummax cummin logcumsumexp kron cross: LATER
    diff: x[1:] - x[:-1]
    trace: tg.einsum('ii', x)
    diagonal: tg.einsum('ii...->...i', x)
    diag: tg.einsum('ii->i', x) of a matrix; of a vector, x * tg.eye(len(x))
    acos acosh arccos arccosh asin asinh arcsin arcsinh atan atanh arctan arctanh: LATER
    atan2 arctan2 cosh sinh tan sinc lgamma digamma erfinv logit hypot: LATER
    sgn: tg.sign(x)
    fix: tg.trunc(x)
    exp2: 2.0 ** x
    log10: tg.log(x) / math.log(10)
    logaddexp: tg.logsumexp(tg.stack([x, y]), 0)
    float_power: x.double() ** y
    erfc: 1 - tg.erf(x)
    xlogy: tg.where(x == 0, 0.0, x * tg.log(y))
    nan_to_num: tg.where(x != x, 0.0, x)
    det inverse cholesky svd qr slogdet pinverse matrix_exp matrix_power: HOST: np.linalg,
        without a gradient
    linalg fft special sparse: HOST
    stft istft: LATER
    cdist: tg.norm(x.unsqueeze(1) - y, dim=-1)
    pairwise_distance: tg.norm(x - y + 1e-6, dim=-1)
    conv3d conv_transpose3d max_pool3d: LATER
    threshold: tg.where(x > threshold, x, value)
    hardshrink rrelu bilinear: LATER
    pixel_shuffle pixel_unshuffle channel_shuffle: reshape and permute
    vmap func: ops take batches on axis 0
    broadcast_to: x.expand(shape)
    broadcast_tensors: x.expand(shape) for each
    view_as_real view_as_complex complex complex64 complex128 bfloat16: float32 or float64
        throughout
    poisson: numpy.random.default_rng(seed)
    randint_like: tg.randint(low, high, x.shape)
    logspace: 10 ** tg.linspace(start, end, steps)
    asarray: tg.as_tensor
    seed initial_seed get_rng_state set_rng_state: tg.manual_seed(seed)
    is_grad_enabled set_grad_enabled enable_grad inference_mode: with tg.no_grad(): ...
    autocast amp: float32 throughout; tg.set_float32_matmul_precision('high') on a GPU
    get_default_dtype: tg.float32, always
    distributions: tg.normal, tg.bernoulli, tg.multinomial; probabilities as ops of the graph
    profiler: tinygraph profile RECIPE
    version: tg.__version__
    set_default_dtype: pass dtype= where a tensor is made, and model.double(): a line means the
        same wherever it stands
    get_default_device set_default_device: pass device= where a tensor is made
    set_printoptions: np.set_printoptions
    use_deterministic_algorithms: every op gives the same bits at every run
    set_num_threads get_num_threads: OMP_NUM_THREADS=1 in the environment
    jit fx export: tg.compile(step), tg.onnx.save for a file, and tg.save for the numbers
    multiprocessing: DataLoader(..., num_workers=4) for data, mpiexec and tg.distributed to train
    utils: tg.data is torch.utils.data; tg.optim has clipping
    Size: shapes are tuples
    FloatTensor DoubleTensor LongTensor IntTensor BoolTensor: tg.Tensor(data, dtype=...)
    hub quantization: nothing of that kind here
""",
        "Tensor": """
    add_ sub_ mul_ div_ pow_ neg_ abs_ exp_ log_ sqrt_ sigmoid_ tanh_ relu_ clamp_ clip_: WRITE
    ceil_ cos_ cumsum_ divide_ erf_ floor_ multiply_ negative_ reciprocal_ remainder_ round_ rsqrt_
        sign_ sin_ square_ subtract_ tril_ triu_ trunc_ clamp_min_ clamp_max_ lerp_ addcmul_
        addcdiv_ nan_to_num_ bernoulli_ exponential_ fill_diagonal_ index_copy_ index_fill_
        index_put_ masked_scatter_: WRITE
    H mH: x.mT
    split_with_sizes: x.split(sizes, dim)
    resize_ resize_as_: x.reshape, and slices
    is_sparse is_quantized: never
    is_pinned: pinned memory is the DataLoader's affair
    retains_grad: x.keeps_grad
    get_device: x.device
    to_sparse to_dense layout: arrays are dense
    register_post_accumulate_grad_hook: x.register_hook
    copy_ zero_ fill_ normal_ uniform_ random_ masked_fill_ index_add_ scatter_ scatter_add_:
        WRITE; tg.nn.init fills parameters
    squeeze_ unsqueeze_ transpose_ t_: x = x.squeeze(), a view of the same memory
    detach_: x = x.detach()
    unfold: tg.im2col(x, kernel_size) for images
    grad_fn: x.op, and x.inputs
    is_cuda is_cpu: x.device == 'cuda'
    is_contiguous stride storage data_ptr untyped_storage: x.value is the array, with strides
    element_size itemsize: x.dtype.itemsize
    nbytes: x.value.nbytes
    is_same_size: x.shape == y.shape
    pin_memory: DataLoader(..., device='cuda') copies through pinned memory
    type: x.dtype, and x.astype(dtype)
    sum_to_size: x.sum(dim, keepdim=True)
    ravel: x.flatten()
    apply_ map_: HOST
    share_memory_: one process
""",
        "nn": """
    modules parameter: the classes themselves are in tg.nn
    Conv3d ConvTranspose3d: LATER
    MaxPool3d AvgPool3d MaxUnpool2d FractionalMaxPool2d LPPool2d: LATER
    AdaptiveMaxPool1d AdaptiveMaxPool2d: x.amax((2, 3)) where the output has size 1
    InstanceNorm3d: tg.instance_norm(x)
    BatchNorm3d: BatchNorm1d on x.flatten(2)
    LocalResponseNorm: LATER
    Transformer: a TransformerEncoder, and a TransformerDecoder that is given what it encoded
    Threshold Hardshrink Softshrink Tanhshrink Softmin RReLU: tg.where, or x - tg.tanh(x)
    Dropout1d Dropout2d Dropout3d AlphaDropout: tg.dropout of ones (N, C, 1, 1), times x
    PixelShuffle PixelUnshuffle ChannelShuffle: reshape and permute
    ZeroPad1d ConstantPad1d ReflectionPad1d ReplicationPad1d CircularPad1d: nn.functional.pad
    Fold Unfold: tg.col2im, tg.im2col
    PairwiseDistance CosineEmbeddingLoss: tg.norm(x - y, dim=1); tg.cosine_similarity
    GaussianNLLLoss PoissonNLLLoss CTCLoss TripletMarginLoss MarginRankingLoss: LATER
    EmbeddingBag: Embedding, then mean or sum over an axis
    LazyLinear LazyConv2d: sizes are given: model.summary(x) says them
    DataParallel parallel: one process and one device
""",
        "nn.functional": """
    conv3d: LATER
    upsample: nn.functional.interpolate
    normalize: x / x.norm(dim=1, keepdim=True).clamp(min=1e-12)
    unfold: tg.im2col
    fold: tg.col2im
    gumbel_softmax: tg.softmax(x - tg.log(-tg.log(noise)))
    grid_sample affine_grid: LATER
    softmin: tg.softmax(-x)
    softshrink tanhshrink: tg.where, or x - tg.tanh(x)
    dropout1d dropout2d dropout3d alpha_dropout: tg.dropout of ones (N, C, 1, 1), times x
    adaptive_max_pool2d adaptive_max_pool1d: tg.max_pool2d, with a kernel of the sizes' quotient
    ctc_loss gaussian_nll_loss poisson_nll_loss triplet_margin_loss margin_ranking_loss: LATER
    cosine_embedding_loss: tg.cosine_similarity
""",
        "optim": """
    LBFGS Rprop NAdam RAdam Adamax Adafactor ASGD Muon SparseAdam: a subclass of
        tg.optim.Optimizer with one method, update
    MultiplicativeLR: set optimizer.lr yourself, or a subclass of tg.optim.Schedule
    CyclicLR CosineAnnealingWarmRestarts: a subclass of
        tg.optim.Schedule: rate(base, t)
    ChainedScheduler: tg.optim.LinearWarmup(optimizer, n, then=schedule)
    LRScheduler: tg.optim.Schedule
    clip_grad_norm_: tg.optim.clip_grad_norm
    clip_grad_value_: tg.optim.clip_grad_value
""",
        "utils.data": """
    IterableDataset ChainDataset: a Dataset with __getitem__ and __len__: batches are made by index
    StackDataset: a Dataset whose sample is the tuple of theirs
    DistributedSampler: one process trains
    get_worker_info: worker_init_fn is told the number of the worker
    default_convert: tg.Tensor(array)
""",
    }
)

_RARE = _rows(rare_names.ABSENT)
ABSENT |= {row: text for row, text in _RARE.items() if row.rpartition(".")[0] in HERE}
NUMPY = _rows(small_places.NUMPY)  # names that numpy alone has
_SMALL = _rows(small_places.ABSENT) | {n: _RARE[n] for n in _RARE if n not in ABSENT}
_ALSO = {  # where a name may stand as well: most methods are functions of torch too
    "Tensor": ["torch"],
    "nn.functional": ["torch"],
    "optim.lr_scheduler": ["optim"],
}
_OF_NUMPY = {"torch": "numpy", "Tensor": "ndarray"}


def way_out(place: str, name: str) -> str:
    """What to write in the place of a name that is not here; "" for one that nobody has."""
    named = [f"{each}.{name}" for each in (place, *_ALSO.get(place, ()))]
    found = [rows[n] for n in named for rows in (ABSENT, _SMALL) if n in rows]
    return found[0] if found else NUMPY.get(f"{_OF_NUMPY.get(place)}.{name}", "")


def no_such_name(place: str, name: str, known: list[str]) -> str:
    """The message of an AttributeError: what to write instead, or the nearest name.

    >>> no_such_name("torch", "tensordot", [])
    'tg.tensordot: PyTorch has it, tinygraph has not. Way out: tg.einsum'
    >>> no_such_name("torch", "soft_max", ["softmax"])
    "tg has no attribute 'soft_max'; did you mean 'softmax'?"
    """
    here, instead = {**HERE, **small_places.HERE}[place], way_out(place, name)
    if instead:
        numpys = NUMPY.get(f"{_OF_NUMPY.get(place)}.{name}") == instead
        whose = "numpy" if numpys else "PyTorch"
        return f"{here}.{name}: {whose} has it, tinygraph has not. Way out: {instead}"
    if name in rare_names.BESIDE:
        way = rare_names.BESIDE[name]
        return f"{here}.{name}: stands beside PyTorch, tinygraph has none. Way out: {way}"
    hint = nearest(name, known)
    return f"{here} has no attribute {name!r}{f'; {hint}' if hint else ''}"
