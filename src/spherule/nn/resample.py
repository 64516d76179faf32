"""Bilinear resampling as a layer, so that compiled programs see plain tensors."""

import torch
from jaxtyping import Float
from torch import Tensor

from spherule import checks
from spherule.distributed import Place, own, ring_halo, whole
from spherule.geometry.interpolation import bilinear_entries
from spherule.grids import Grid
from spherule.nn.checks import require_channels
from spherule.nn.placed import Placed
from spherule.ops.sparse import SparseMap, sparse_map


class Resample(Placed):
    """`ops.resample` between two fixed grids."""

    weight: Tensor

    @checks.arguments
    def __init__(self, source: Grid, target: Grid) -> None:
        super().__init__()
        self.place(source, target)

    def place(self, source: Place, target: Place) -> None:
        self.source, self.target = source, target
        self.halo, points = ring_halo(source, target), own(target)
        # Of the whole source, which knows where the poles are.
        row, column, weight = bilinear_entries(whole(source), points.point_theta, points.point_phi)
        shape = (points.size, self.halo.seen.size)
        matrix = SparseMap.build(
            row, column - self.halo.start, weight, shape, torch.float32, torch.device("cpu")
        )
        for name, tensor in matrix._asdict().items():
            self.set_table(name, tensor)

    def forward(
        self, x: Float[Tensor, "batch channels ..."]
    ) -> Float[Tensor, "batch channels ..."]:
        require_channels(self, "x", x, self.source)
        matrix = [getattr(self, name) for name in SparseMap._fields]
        # In float32 whatever the precision around: sparse products know no 16 bit.
        flat = self.halo(x.flatten(0, 1).flatten(1)).to(self.weight.dtype)
        return sparse_map(flat, *matrix).to(x.dtype).view(*x.shape[:2], *self.target.shape)

    def extra_repr(self) -> str:
        return f"{self.source.name} -> {self.target.name}"
