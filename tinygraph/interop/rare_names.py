"""PyTorch's names that few programs use: the way out (read by torch_names.py)."""

ABSENT = {
    "torch": """
    addr: b + tg.outer(x, y)
    adjoint: x.mT
    aminmax: tg.amin(x, dim), tg.amax(x, dim)
    vdot: tg.dot
    chain_matmul: a @ b @ c
    bitwise_left_shift: x * 2 ** n
    bitwise_right_shift: x // 2 ** n
    block_diag: tg.pad each matrix to the size of all, and add them
    diag_embed diagflat: x.unsqueeze(-1) * tg.eye(n), with n = x.shape[-1]
    range: tg.arange(start, end + step, step)
    nanmean: m = x == x; tg.where(m, x, 0.0).sum() / m.sum()
    nanmedian nanquantile histogramdd nonzero_static: HOST
    isneginf: x == -tg.inf
    isposinf: x == tg.inf
    is_floating_point: x.dtype.kind == 'f'
    is_signed: x.dtype.kind != 'u'
    is_nonzero: bool(x)
    is_complex is_conj is_neg: never
    isreal conj_physical resolve_conj resolve_neg polar cfloat cdouble chalf complex32: floats have
        no imaginary part
    is_inference is_inference_mode_enabled: there is tg.no_grad() alone
    as_strided: x.reshape, and slices
    as_strided_scatter diagonal_scatter select_scatter slice_scatter index_reduce put:
        tg.where(mask, a, b)
    narrow_copy: x[:, start : start + length]
    unsafe_chunk unsafe_split: tg.chunk, tg.split
    renorm: x * tg.clamp(maxnorm / x.norm(dim=1, keepdim=True), max=1), for dim 0 of a matrix
    trapezoid trapz: ((y[..., 1:] + y[..., :-1]) / 2 * dx).sum(-1)
    cumulative_trapezoid: ((y[..., 1:] + y[..., :-1]) / 2 * dx).cumsum(-1)
    gradient: HOST: np.gradient
    pdist: the distances of tg.norm(x.unsqueeze(1) - x, dim=-1), above the diagonal
    i0 igamma igammac mvlgamma polygamma segment_reduce conv_tbc: LATER
    bartlett_window blackman_window hamming_window hann_window kaiser_window: tg.from_numpy of
        np.hanning and its kin: PyTorch's of n is numpy's of n + 1 without the last
    signal: HOST
    cholesky_inverse cholesky_solve geqrf lobpcg logdet lu lu_solve lu_unpack orgqr ormqr
        pca_lowrank svd_lowrank triangular_solve: HOST: np.linalg, without a gradient
    frombuffer from_file: tg.from_numpy, of what numpy reads so
    empty_strided empty_permuted: tg.empty
    sparse_coo_tensor sparse_csr_tensor sparse_csc_tensor sparse_bsr_tensor sparse_bsc_tensor
        sparse_compressed_tensor sparse_coo smm hspmm sspaddmm strided layout: arrays are dense
    memory_format contiguous_format channels_last channels_last_3d preserve_format: leave it out:
        ops take arrays in any layout
    quantize_per_channel quantize_per_tensor quantize_per_tensor_dynamic quantized_batch_norm
        quantized_max_pool1d quantized_max_pool2d dequantize fake_quantize_per_channel_affine
        fake_quantize_per_tensor_affine qint8 qint32 quint8 ao: nothing of that kind here
    HalfTensor ByteTensor CharTensor ShortTensor: tg.Tensor(data, dtype=...)
    set_default_tensor_type: pass dtype= where a tensor is made, and model.double()
    set_num_interop_threads get_num_interop_threads: OMP_NUM_THREADS=1 in the environment
    are_deterministic_algorithms_enabled is_deterministic_algorithms_warn_only_enabled
        get_deterministic_debug_mode set_deterministic_debug_mode: every op gives the same bits at
        every run
    set_flush_denormal set_warn_always is_warn_always_enabled: there is nothing to set
    typename: type(x).__name__
    accelerator cpu mps mtia xpu get_device_module: the devices are 'cpu', 'emulator' and 'cuda'
    Event Stream: launches stand in one line, as in a program
    OutOfMemoryError AcceleratorError: MemoryError; on a GPU cupy.cuda.memory.OutOfMemoryError
    GradScaler: float32 throughout, which needs none
    cond while_loop: Python's if and while: the graph is made as the code runs
    compiler: tg.compile
    fork wait futures: one process and one device
    nested: sequences padded to one length, tg.stack, and a mask
    masked: tg.where(mask, x, 0.0)
    library overrides: a subclass of tg.Op: docs/add_an_op.md
    serialization storage package: tg.save and tg.load
    functional: the functions of tg
    types: tg.Tensor and numpy's dtypes
    relu_ selu_ celu_ rrelu_ threshold_: WRITE
""",
    "Tensor": """
    absolute_ acos_ acosh_ addbmm_ addmm_ addmv_ addr_ arccos_ arccosh_ arcsin_ arcsinh_ arctan2_
        arctan_ arctanh_ as_strided_ asin_ asinh_ atan2_ atan_ atanh_ baddbmm_ bitwise_and_
        bitwise_left_shift_ bitwise_not_ bitwise_or_ bitwise_right_shift_ bitwise_xor_ cauchy_
        conj_physical_ copysign_ cosh_ cumprod_ deg2rad_ digamma_ eq_ erfc_ erfinv_ exp2_ expm1_
        fix_ float_power_ floor_divide_ fmod_ frac_ gcd_ ge_ geometric_ greater_ greater_equal_ gt_
        heaviside_ hypot_ i0_ igamma_ igammac_ index_reduce_ lcm_ ldexp_ le_ less_ less_equal_
        lgamma_ log10_ log1p_ log2_ log_normal_ logical_and_ logical_not_ logical_or_ logical_xor_
        logit_ lt_ mvlgamma_ ne_ nextafter_ not_equal_ polygamma_ put_ rad2deg_ renorm_
        scatter_reduce_ set_ sgn_ sinc_ sinh_ swapaxes_ swapdims_ tan_ true_divide_ xlogy_: WRITE
    coalesce col_indices crow_indices dense_dim sparse_dim sparse_mask indices values is_coalesced
        is_sparse_csr to_sparse_bsc to_sparse_bsr to_sparse_coo to_sparse_csc to_sparse_csr
        to_padded_tensor: arrays are dense
    int_repr q_per_channel_axis q_per_channel_scales q_per_channel_zero_points q_scale q_zero_point
        qscheme: nothing of that kind here
    is_xpu is_ipu is_mps is_xla xpu ipu mtia to_mkldnn: the devices are 'cpu', 'emulator' and 'cuda'
    is_meta: shapes without numbers: tg.Spec
    is_shared is_set_to const_data_ptr storage_offset storage_type dim_order: x.value is the array
    new_empty_strided: x.new_empty(shape)
    as_subclass: a subclass of tg.Op, not of Tensor
    index: x[indices]
    record_stream: launches stand in one line, as in a program
    module_load: p.value = array
    grad_dtype: x.dtype, which gradients have too
""",
    "nn": """
    AdaptiveAvgPool3d AdaptiveMaxPool3d FractionalMaxPool3d LPPool1d LPPool3d MaxUnpool1d
        MaxUnpool3d: LATER
    CircularPad3d ConstantPad3d ReflectionPad3d ReplicationPad3d ZeroPad3d: nn.functional.pad
    FeatureAlphaDropout: tg.dropout of ones (N, C, 1, 1), times x
    Bilinear: tg.einsum('ni, oij, nj -> no', x, weight, y) + bias
    Softmax2d: nn.Softmax(dim=1)
    MultiLabelSoftMarginLoss: nn.BCEWithLogitsLoss
    HingeEmbeddingLoss MultiLabelMarginLoss MultiMarginLoss SoftMarginLoss
        AdaptiveLogSoftmaxWithLoss TripletMarginWithDistanceLoss LinearCrossEntropyLoss: LATER
    LazyBatchNorm1d LazyBatchNorm2d LazyBatchNorm3d LazyConv1d LazyConv3d LazyConvTranspose1d
        LazyConvTranspose2d LazyConvTranspose3d LazyInstanceNorm1d LazyInstanceNorm2d
        LazyInstanceNorm3d UninitializedBuffer UninitializedParameter: sizes are given:
        model.summary(x) says them
    RNNBase: nn.RNN, nn.GRU, nn.LSTM, and tg.rnn_layer below them
    intrinsic qat quantizable quantized: nothing of that kind here
""",
    "nn.functional": """
    adaptive_avg_pool3d adaptive_max_pool3d avg_pool3d fractional_max_pool2d fractional_max_pool3d
        lp_pool1d lp_pool2d lp_pool3d max_unpool1d max_unpool2d max_unpool3d
        local_response_norm: LATER
    hinge_embedding_loss multi_margin_loss multilabel_margin_loss soft_margin_loss
        triplet_margin_with_distance_loss linear_cross_entropy: LATER
    max_pool1d_with_indices max_pool2d_with_indices max_pool3d_with_indices
        adaptive_max_pool1d_with_indices adaptive_max_pool2d_with_indices
        adaptive_max_pool3d_with_indices: tg.im2col(x, kernel_size, stride) has the windows, and
        tg.argmax their places
    multilabel_soft_margin_loss: nn.functional.binary_cross_entropy_with_logits
    multi_head_attention_forward: nn.MultiheadAttention
    embedding_bag: nn.functional.embedding, then mean or sum over an axis
    feature_alpha_dropout: tg.dropout of ones (N, C, 1, 1), times x
    upsample_nearest upsample_bilinear: nn.functional.interpolate
    scaled_mm grouped_mm scaled_grouped_mm: tg.matmul
    elu_ hardtanh_ leaky_relu_: WRITE
""",
    "optim": """
    swa_utils: a second model, its average: with tg.no_grad(), after each step, p += 0.01 * (q - p)
        for p, q in zip(average.parameters(), model.parameters())
""",
    "utils.data": """
    distributed: DataLoader(...).part(rank, size), of a batch that all ranks share
    dataloader sampler dataset: the classes themselves are in tg.data
    datapipes IterDataPipe MapDataPipe: a Dataset with __getitem__ and __len__
""",
    "nn.utils": """
    convert_conv2d_weight_memory_format convert_conv3d_weight_memory_format memory_format: leave it
        out: ops take arrays in any layout
    fuse_conv_bn_weights fuse_linear_bn_weights: tg.compile folds nothing in; eval() is enough
""",
    "autograd": """
    anomaly_mode: with tg.detect_anomaly(): ...
    grad_mode: with tg.no_grad(): ...
    function variable: tg.Op, tg.Tensor
""",
    "cuda": """
    get_device_capability get_arch_list is_initialized init: tinygraph doctor says what is there
    device device_of can_device_access_peer: a program uses one GPU, device='cuda'
    OutOfMemoryError AcceleratorError: cupy.cuda.memory.OutOfMemoryError
    max_memory_reserved memory_stats memory_snapshot memory_usage memory_cached max_memory_cached
        reset_max_memory_allocated set_per_process_memory_fraction MemPool memory utilization
        CUDAPluggableAllocator: cupy.get_default_memory_pool() has free_all_blocks and used_bytes
    ExternalStream StreamContext set_stream streams: launches stand in one line, as in a program
    initial_seed seed_all get_rng_state_all set_rng_state_all random: tg.manual_seed(seed)
    graphs graph_pool_handle is_current_stream_capturing: tg.cuda.capture(step)
    nvtx profiler: tinygraph profile RECIPE
    jiterator: tg.cuda.Kernel
""",
}

BESIDE = {  # packages that stand beside PyTorch
    "torchvision": "tg.data.mnist, tg.data.cifar10, tg.data.ImageFolder and transforms, "
    "tg.data.Compose; networks stand in tinygraph/recipes",
    "torchaudio": "arrays, as tg.data.ArrayDataset takes them",
    "torchtext": "tg.data.read_text and tg.data.TextWindows",
    "torchmetrics": "numpy on x.numpy()",
    "lightning": "tg.training.Trainer",
}
