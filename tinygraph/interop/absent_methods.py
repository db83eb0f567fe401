"""Methods of PyTorch's and numpy's that a Tensor has not.  A sentence for each: torch_names.py."""

from __future__ import annotations

from typing import Any

from tinygraph.base import above
from tinygraph.engine.operators import Absent

# Those without an op of their name; one that has become a method since is that method.
ABSENT = """
    H abs_ absolute_ acos acos_ acosh acosh_ add_ addbmm addbmm_ addcdiv addcdiv_ addcmul addcmul_
    addmm addmm_ addmv addmv_ addr addr_ adjoint allclose aminmax angle apply_ arccos arccos_
    arccosh arccosh_ arcsin arcsin_ arcsinh arcsinh_ arctan arctan2 arctan2_ arctan_ arctanh
    arctanh_ argwhere as_strided as_strided_ as_strided_scatter as_subclass asin asin_ asinh asinh_
    atan atan2 atan2_ atan_ atanh atanh_ baddbmm baddbmm_ bernoulli_ bfloat16 bincount bitwise_and_
    bitwise_left_shift bitwise_left_shift_ bitwise_not_ bitwise_or_ bitwise_right_shift
    bitwise_right_shift_ bitwise_xor_ broadcast_to cauchy_ cdouble ceil_ cfloat chalf cholesky
    cholesky_inverse cholesky_solve choose clamp_ clamp_max clamp_max_ clamp_min clamp_min_ clip_
    coalesce col_indices compress conj conj_physical conj_physical_ conjugate const_data_ptr copy
    copy_ copysign copysign_ corrcoef cos_ cosh cosh_ cov cross crow_indices cummax cummin cumprod
    cumprod_ cumsum_ data_ptr deg2rad deg2rad_ dense_dim dequantize det detach_ diag diag_embed
    diagflat diagonal diagonal_scatter diff digamma digamma_ dim_order dist div_ divide_ dsplit
    element_size eq_ erf_ erfc erfc_ erfinv erfinv_ exp2 exp2_ exp_ expm1_ exponential_ fill fill_
    fill_diagonal_ fix fix_ flat fliplr flipud float_power float_power_ floor_ floor_divide_ fmax
    fmin fmod fmod_ frac frac_ frexp gcd gcd_ ge_ geometric_ geqrf ger get_device grad_dtype grad_fn
    greater_ greater_equal_ gt_ hardshrink heaviside_ histc histogram hsplit hypot hypot_ i0 i0_
    igamma igamma_ igammac igammac_ imag index index_add index_add_ index_copy index_copy_
    index_fill index_fill_ index_put index_put_ index_reduce index_reduce_ index_select indices
    inner int_repr inverse ipu is_coalesced is_complex is_conj is_contiguous is_cpu is_cuda
    is_floating_point is_inference is_ipu is_meta is_mps is_neg is_nonzero is_pinned is_quantized
    is_same_size is_set_to is_shared is_signed is_sparse is_sparse_csr is_xla is_xpu isclose
    isneginf isposinf isreal istft itemsize kron kthvalue layout lcm lcm_ ldexp ldexp_ le_ lerp
    lerp_ less_ less_equal_ lgamma lgamma_ log10 log10_ log1p_ log2_ log_ log_normal_ logaddexp
    logaddexp2 logcumsumexp logdet logical_and_ logical_not_ logical_or_ logical_xor_ logit logit_
    lt_ lu lu_solve mH map_ masked_fill_ masked_scatter masked_scatter_ masked_select matrix_exp
    matrix_power median mode module_load msort mtia mul_ multiply_ mvlgamma mvlgamma_ nan_to_num
    nan_to_num_ nanmean nanmedian nanquantile nansum narrow narrow_copy nbytes ne_ neg_ negative_
    new_empty_strided nextafter nextafter_ nonzero nonzero_static normal_ not_equal_ orgqr ormqr
    partition pin_memory pinverse polygamma polygamma_ positive pow_ put put_ q_per_channel_axis
    q_per_channel_scales q_per_channel_zero_points q_scale q_zero_point qr qscheme quantile rad2deg
    rad2deg_ random_ ravel real reciprocal_ record_stream register_post_accumulate_grad_hook relu_
    remainder_ renorm renorm_ resize resize_ resize_as_ resolve_conj resolve_neg retains_grad rot90
    round_ rsqrt_ scatter scatter_ scatter_add scatter_add_ scatter_reduce scatter_reduce_ select
    select_scatter set_ sgn sgn_ share_memory_ sigmoid_ sign_ signbit sin_ sinc sinc_ sinh sinh_
    slice_scatter slogdet smm sparse_dim sparse_mask split_with_sizes sqrt_ square_ squeeze_
    sspaddmm stft storage storage_offset storage_type stride strides sub_ subtract_ sum_to_size svd
    swapaxes_ swapdims_ t t_ take take_along_dim tan tan_ tanh_ to_dense to_mkldnn to_padded_tensor
    to_sparse to_sparse_bsc to_sparse_bsr to_sparse_coo to_sparse_csc to_sparse_csr tobytes tofile
    trace transpose_ triangular_solve tril_ triu_ true_divide_ trunc_ type unfold uniform_ unique
    unique_consecutive unsafe_chunk unsafe_split unsqueeze_ untyped_storage values vdot vsplit xlogy
    xlogy_ xpu zero_
"""


class _Absent:
    """A method of PyTorch's that is not here: asked for, it says what to write instead."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, node: Any, kind: Any) -> Any:
        raise AttributeError(above.no_such_name("Tensor", self.name, []))


def fill() -> None:
    """Let a Tensor's absent methods say what they are called here."""
    for name in ABSENT.split():
        setattr(Absent, name, _Absent(name))
