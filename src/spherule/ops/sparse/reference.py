"""Products with a sparse matrix by torch's own."""

import warnings

import torch
from torch import Tensor

from spherule.ops.autocast import no_autocast

# torch says once in a process that compressed rows are in beta. Said to nobody here and now, since
# filters of warnings belong to all threads.
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    _nothing = torch.zeros(0, dtype=torch.int64, device="cpu")
    torch.sparse_csr_tensor(
        torch.zeros(1, dtype=torch.int64, device="cpu"), _nothing, _nothing.float(), (0, 0),
        check_invariants=False,
    )  # fmt: skip


def sparse_map(x: Tensor, start: Tensor, column: Tensor, weight: Tensor) -> Tensor:
    """(fields, columns) to (fields, rows)."""
    shape = (start.shape[0] - 1, x.shape[1])
    matrix = torch.sparse_csr_tensor(start, column, weight, shape, check_invariants=False)
    # Sparse products know no 16 bit, whatever the precision around them.
    with no_autocast(x):
        return (matrix @ x.T.contiguous()).T.contiguous()
