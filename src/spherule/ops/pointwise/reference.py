"""Maps over the channels of each point, in plain PyTorch: what differentiates in every way, and
what compilers of other programs know.
"""

import torch.nn.functional as F
from torch import Tensor


def linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """weight (out, in) times x (batch, in, points), plus bias."""
    if not x.shape[-1]:  # convolutions refuse what products take: a rank may own no point
        return weight @ x if bias is None else weight @ x + bias[:, None]
    # A convolution is the fast one of torch's ways to multiply channels-first data on the CPU.
    return F.conv1d(x, weight[..., None], bias)


def mlp(x: Tensor, first: Tensor, bias: Tensor, second: Tensor) -> Tensor:
    """second gelu(first x + bias)."""
    return linear(F.gelu(linear(x, first, bias)), second, None)
