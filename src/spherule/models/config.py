"""Architectures as values: frozen, checked when they are made, and plain in JSON.

Grids and channels are no part of them; those are arguments of a model.
"""

import dataclasses
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeVar

from spherule import checks
from spherule.grids import Grid
from spherule.grids.serial import grid_from_json, grid_to_json
from spherule.nn.spectral import default_lmax

AnyConfig = TypeVar("AnyConfig", bound="ModelConfig")
AnyNetworkConfig = TypeVar("AnyNetworkConfig", bound="NetworkConfig")
AnyGeometryConfig = TypeVar("AnyGeometryConfig", bound="GeometryConfig")


@dataclass(frozen=True)
class ModelConfig:
    """What every model's config can do."""

    def __post_init__(self) -> None:
        checks.config(self)
        self.check()

    def check(self) -> None:
        """Refuse what the fields' types allow but the architecture does not."""

    def resolved(self: AnyConfig, grid: Grid) -> AnyConfig:
        """What is built on a grid: inner grids and radii of None filled in."""
        return self

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as JSON has them."""
        return {f.name: _plain(getattr(self, f.name)) for f in dataclasses.fields(self)}

    @classmethod
    def from_dict(cls: type[AnyConfig], values: dict[str, Any]) -> AnyConfig:
        """The inverse; fields that are not given have their defaults."""
        checks.instance("config", values, dict)
        fields = [field.name for field in dataclasses.fields(cls)]
        if unknown := sorted(map(str, set(values) - set(fields))):
            raise ValueError(
                f"config: {cls.__name__} has no {', '.join(unknown)}; it has {', '.join(fields)}"
            )
        return cls(**{name: _revived(value) for name, value in values.items()})


@dataclass(frozen=True)
class NetworkConfig(ModelConfig):
    """What networks of attention blocks have in common."""

    position: Literal["spectral", "learned", "sequence", "none"] = "spectral"
    norm: Literal["instance", "plain_instance", "layer"] = "instance"
    """Instance norm by quadrature, with all points alike, or layer norm over the channels."""
    dropout: float = 0.0
    """Of the feed-forward parts' outputs, and of the weights of global attention; local attention
    never forms its weights."""
    drop_path: float = 0.0
    """Of the last block; the blocks before it have proportionally less."""
    skip: Literal["none", "identity", "spectral", "zonal"] = "none"
    """What the network's output is added to: nothing, the first `out_channels` channels of the
    input, or a linear map of the input, which `fit` finds: with a matrix for each degree, or, as
    fits a planet that rotates, for each degree and order."""
    skip_lmax: int | None = None
    """The highest degree of a fitted skip; by default `bandlimit`, or what the grid resolves."""
    skip_reach: int = 3
    """Degrees on either side that a zonal skip finds each from: the more, the longer the lead."""
    bandlimit: int | None = None
    """The output is truncated to this degree."""
    keep_mean: bool = False
    """The output's means over the sphere are those of the input's first channels."""
    checkpoint: bool = False
    """Recompute each block's activations in the backward pass instead of keeping them."""

    def check(self) -> None:
        checks.number("dropout", self.dropout, low=0, below=1)
        checks.number("drop_path", self.drop_path, low=0, below=1)
        for name in ("skip_lmax", "bandlimit"):
            if getattr(self, name) is not None:
                checks.integer(name, getattr(self, name), low=0)
        checks.integer("skip_reach", self.skip_reach, low=0)
        if self.bandlimit is not None and self.skip_lmax not in (None, self.bandlimit):
            raise ValueError(f"skip_lmax={self.skip_lmax} must be bandlimit={self.bandlimit}")
        fields = {field.name: field for field in dataclasses.fields(self)}
        for name, value, others in IGNORED:
            if getattr(self, name, None) != value:
                continue
            for other in fields.keys() & set(others):
                if (given := getattr(self, other)) != fields[other].default:
                    raise ValueError(f"{other}={given!r} means nothing with {name}={value!r}")

    @property
    def fitted_skip(self) -> bool:
        """Whether the skip is a linear map that `fit` finds."""
        return self.skip in ("spectral", "zonal")

    def resolved(self: AnyNetworkConfig, grid: Grid) -> AnyNetworkConfig:
        if not self.fitted_skip or self.skip_lmax is not None:
            return self
        lmax = default_lmax(grid) if self.bandlimit is None else self.bandlimit
        return dataclasses.replace(self, skip_lmax=lmax)

    def refuse_harmonics(self, plane: str) -> None:
        """For networks that take the grid for a plane."""
        uses = {
            "skip": self.fitted_skip,
            "bandlimit": self.bandlimit is not None,
            "keep_mean": self.keep_mean,
        }
        for name in (name for name, used in uses.items() if used):
            raise ValueError(
                f"{name}={getattr(self, name)!r} needs to know the sphere, which {plane} does not"
            )


IGNORED: tuple[tuple[str, Any, tuple[str, ...]], ...] = (
    ("attention", "planar", ("qk_norm", "edge_width", "cutoff", "cutoffs")),
    ("local", False, ("window", "edge_width", "cutoff", "cutoffs")),
    (
        "convolution",
        "planar",
        ("radii", "angles", "convolution_cutoff", "merging_cutoffs", "mixing_cutoffs"),
    ),
    ("convolution", "spherical", ("kernel",)),
    ("skip", "none", ("skip_lmax", "skip_reach")),
    ("skip", "identity", ("skip_lmax", "skip_reach")),
    ("skip", "spectral", ("skip_reach",)),
)
"""Where a field has this value, these others mean nothing."""


@dataclass(frozen=True)
class GeometryConfig(NetworkConfig):
    """Networks whose convolutions and attention know the sphere, or take the grid for a plane."""

    PLANAR: ClassVar[dict[str, Any]] = {}
    """What makes the planar counterpart."""

    convolution: Literal["spherical", "planar"] = "spherical"
    radii: int = 2
    angles: int = 4
    """Hats of the spherical filters: one in the center, `angles` at each of `radii` distances.
    `angles=1` makes them isotropic; with `position="none"` the whole model is then equivariant."""
    upsampling: Literal["spherical", "planar"] | None = None
    """Bilinear, across the date line and the poles or on rows and columns; by default as the
    convolution."""
    attention: Literal["spherical", "planar"] = "spherical"
    local: bool = True
    """Attention within disks (spherical) or windows (planar) of `window` cells; else global."""
    window: int = 7
    edge_width: float = 0.0
    """Width of the disks' soft edge in radians."""
    qk_norm: bool = False
    """Normalize queries and keys before their product; spherical attention only."""

    @classmethod
    def spherical(cls: type[AnyGeometryConfig], **changes: Any) -> AnyGeometryConfig:
        """The defaults, with changes."""
        return cls(**changes)

    @classmethod
    def planar(cls: type[AnyGeometryConfig], **changes: Any) -> AnyGeometryConfig:
        """The counterpart that takes the grid for an image, with changes."""
        return cls(**(cls.PLANAR | changes))

    def check(self) -> None:
        super().check()
        for name in ("radii", "angles", "window"):
            checks.integer(name, getattr(self, name), low=1)
        checks.number("edge_width", self.edge_width, low=0)
        if self.attention == "planar" and self.window % 2 == 0:
            raise ValueError(f"window={self.window} must be odd: planar windows have a middle")
        for name in ("convolution", "attention"):
            if getattr(self, name) == "planar":
                self.refuse_harmonics(f"{name}='planar'")


def check_width(name: str, width: int, heads: int) -> None:
    """Heads share the channels evenly."""
    if checks.integer(name, width, low=1) % checks.integer("heads", heads, low=1):
        raise ValueError(f"{name}={width} must be a multiple of heads={heads}")


def check_cutoff(name: str, cutoff: float | None) -> None:
    """A radius is in (0, pi], or left to the grid."""
    if cutoff is not None:
        checks.radius(name, cutoff)


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, str) and value.startswith("rings:"):
        return grid_to_json(Grid.from_name(value))
    return value


def _revived(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_revived(entry) for entry in value)
    return grid_from_json(value).name if isinstance(value, dict) else value
