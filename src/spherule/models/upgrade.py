"""What 0.1.0 wrote, in today's words.

Its configs held the grid and the channels, it had a class each for spherical and planar models, and
it took fields that meant nothing. Weights have kept their names.
"""

from typing import Any

from spherule.models.config import IGNORED

_INTERFACE = ("grid", "in_channels", "out_channels")
_SPHERICAL: dict[str, Any] = {"convolution": "spherical", "attention": "spherical", "local": True}
_PLANAR: dict[str, Any] = {
    **_SPHERICAL,
    "convolution": "planar",
    "attention": "planar",
    "norm": "layer",
}
# Each class of 0.1.0: what it is now, and the defaults by which it differed.
_CLASSES: dict[str, tuple[str, dict[str, Any]]] = {
    "SphericalTransformer": ("Transformer", _SPHERICAL),
    "PlanarTransformer": ("Transformer", _PLANAR),
    "SphericalSegformer": ("Segformer", {**_SPHERICAL, "kernel": 3}),
    "PlanarSegformer": ("Segformer", {**_PLANAR, "position": "none", "kernel": 4}),
    "VisionTransformer": ("VisionTransformer", {"attention": "planar", "local": False}),
}
# What a Vision Transformer's config held besides, and had no say in.
_NOT_OF_VIT = (
    *("convolution", "radii", "angles", "attention"),
    *("local", "window", "edge_width", "qk_norm"),
)


def upgrade_description(description: dict[str, Any]) -> dict[str, Any]:
    """A model's `config.json`; one of today stays as it is."""
    name, old = description.get("model"), description.get("config")
    if name not in _CLASSES or "grid" in description or not isinstance(old, dict):
        return description
    interface = {key: old[key] for key in _INTERFACE if key in old}
    return {"model": _CLASSES[name][0], **interface, "config": _fields(name, old)}


def upgrade_tagged(values: dict[str, Any]) -> dict[str, Any]:
    """The model in a run's config, `{"type": ..., **fields}`; one of today stays as it is."""
    name = str(values.get("type")).removesuffix("Config")
    if name not in _CLASSES or not {*_INTERFACE, "residual"} & values.keys():
        return values
    fields = {key: value for key, value in values.items() if key != "type"}
    return {"type": f"{_CLASSES[name][0]}Config", **_fields(name, fields)}


def _fields(name: str, old: dict[str, Any]) -> dict[str, Any]:
    """The fields of today's config, without those that were ignored."""
    fields = {**_CLASSES[name][1], **old}
    for key in _INTERFACE:
        fields.pop(key, None)
    fields["skip"] = "identity" if fields.pop("residual", False) else "none"
    if name == "VisionTransformer":
        if fields["local"] or fields["attention"] != "planar":
            raise ValueError(
                "a VisionTransformer of 0.1.0 with local or spherical attention has no equal: "
                "train it again, as a Transformer with position='learned'"
            )
        return {key: value for key, value in fields.items() if key not in _NOT_OF_VIT}
    if fields["convolution"] == "planar":
        fields["upsampling"] = "spherical"
    for key, value, ignored in IGNORED:
        if fields[key] == value:
            for other in ignored:
                fields.pop(other, None)
    return fields
