"""A mask reaches all layers: what it hides has no influence, and no gradient."""

import pytest
import torch

from spherule import Grid, nn
from spherule.models import (
    Segformer,
    SegformerConfig,
    Transformer,
    TransformerConfig,
    VisionTransformer,
    VisionTransformerConfig,
)

SMALL = {"width": 8, "depth": 1, "heads": 2}
STAGES = {"widths": (8, 8), "depths": (1, 1), "heads": (2, 2)}
MODELS = {
    "local": (Transformer, TransformerConfig(**SMALL), "gauss:12x24"),
    "global": (Transformer, TransformerConfig(**SMALL, local=False), "gauss:12x24"),
    "layer norm": (Transformer, TransformerConfig(**SMALL, norm="layer"), "gauss:12x24"),
    "identity": (Transformer, TransformerConfig(**SMALL, skip="identity"), "H4"),
    "spectral": (Transformer, TransformerConfig(**SMALL, skip="spectral"), "gauss:12x24"),
    "planar": (Transformer, TransformerConfig.planar(**SMALL), "gauss:12x24"),
    "segformer": (Segformer, SegformerConfig(**STAGES), "O8"),
    "patches": (VisionTransformer, VisionTransformerConfig(**SMALL), "gauss:12x24"),
}


def cap(grid: Grid) -> torch.Tensor:
    """False south of 40 degrees south."""
    return torch.tensor(grid.point_theta < 2.27).reshape(grid.shape)


@pytest.mark.parametrize("which", MODELS)
def test_a_cap_of_nan_has_no_influence_and_no_gradient(which: str) -> None:
    kind, config, name = MODELS[which]
    grid = Grid.from_name(name)
    model, mask = kind(config, grid, 3, 2).eval(), cap(grid)
    x = torch.randn(2, 3, *grid.shape)
    holes = x.masked_fill(~mask, torch.nan).requires_grad_()
    others = x.masked_fill(~mask, 1e3)
    y = model(holes, mask=mask)
    assert y.isfinite().all()
    assert torch.equal(y, model(others, mask=mask.expand(2, *grid.shape)))
    (grad,) = torch.autograd.grad(y.square().sum(), holes)
    assert (grad[..., ~mask] == 0).all()
    assert (grad[..., mask] != 0).any()
    assert all(p.isfinite().all() for p in model.parameters())
    if which not in ("planar", "patches", "spectral"):  # whose branch begins as 0
        assert not torch.allclose(y, model(x.masked_fill(~mask, 0.0)), atol=1e-3)


@pytest.mark.parametrize("which", ["local", "global", "segformer"])
def test_a_mask_of_all_points_changes_nothing(which: str) -> None:
    kind, config, name = MODELS[which]
    grid = Grid.from_name(name)
    model = kind(config, grid, 3, 2).eval()
    x = torch.randn(2, 3, *grid.shape)
    everywhere = torch.ones(grid.shape, dtype=torch.bool)
    assert torch.allclose(model(x, mask=everywhere), model(x), atol=2e-5)


def test_masked_convolution_averages_what_is_seen() -> None:
    grid = Grid.gauss(24, 48)
    layer = nn.DiscoConv(2, 4, grid, groups=2, cutoff=0.4)
    mask = cap(grid).expand(3, *grid.shape)
    constant = torch.tensor([2.0, -1.0]).view(2, 1, 1).expand(3, 2, *grid.shape)
    whole = layer(constant)
    inside = layer.reach(mask)
    assert inside[:, :17].all()
    assert not inside[:, -1].any()
    seen = layer(constant, mask)
    # Where every hat sees a point, a constant stays what it is, however few they are.
    assert torch.allclose(seen[:, :, :17], whole[:, :, :17], atol=1e-5)
    assert not torch.allclose(layer(constant * mask[:, None])[:, :, :17], whole[:, :, :17])


def test_masked_norm_is_that_of_the_points_that_count() -> None:
    grid = Grid.healpix(4)
    norm, mask = nn.SphericalInstanceNorm(3, grid), cap(grid).expand(2, grid.size)
    x = torch.randn(2, 3, grid.size)
    y = norm(x.masked_fill(~mask[:, None], 7.0), mask)[..., mask[0]]
    assert torch.allclose(y.mean(-1), torch.zeros(2, 3), atol=1e-5)
    assert torch.allclose(y.var(-1, correction=0), torch.ones(2, 3), atol=1e-3)


def test_a_mask_that_does_not_fit_is_refused(unchecked) -> None:
    kind, config, name = MODELS["local"]
    model = kind(config, name, 3, 2)
    x = torch.randn(2, 3, 12, 24)
    with pytest.raises(ValueError, match="mask: expected"):
        model(x, mask=torch.ones(24, 12, dtype=torch.bool))
    with pytest.raises(TypeError, match="mask: expected bool"):
        model(x, mask=torch.ones(12, 24))
