"""What recipes are called: all that a list of them needs, and nothing that imports torch."""

ROWS = {
    "r2-transformer": "R² Transformer",
    "s2-transformer": "S² Transformer",
    "r2-transformer-local": "R² Transformer (local)",
    "s2-transformer-local": "S² Transformer (local)",
    "r2-segformer": "R² SegFormer",
    "s2-segformer": "S² SegFormer",
    "r2-segformer-local": "R² SegFormer (local)",
    "s2-segformer-local": "S² SegFormer (local)",
}
LARGE = {
    "r2-segformer-local-large": "R² SegFormer (local, large)",
    "s2-segformer-local-large": "S² SegFormer (local, large)",
}
ABLATION = {
    "ablation-1-vit": "ViT",
    "ablation-2-convolution": "− patches + R² convolution",
    "ablation-3-spectral": "− learned + spectral positions",
    "ablation-4-s2-convolution": "− R² + S² convolution",
    "ablation-5-s2-attention": "− R² + S² attention",
    "ablation-6-local": "− global + local attention",
}
LINEAR = "Linear, a matrix a degree"
ZONAL_LINEAR = "Linear, matrices a degree and order"
SPECTRAL = "S² Transformer (local), spectral skip"
ZONAL = "S² Transformer (local), zonal skip"
STABLE = f"{SPECTRAL}, stable"

TITLES: dict[str, str] = {
    f"{prefix}/{key}": title
    for prefix, rows in (
        ("swe", ROWS | ABLATION),
        ("seg", ROWS | LARGE),
        ("depth", ROWS),
        ("forecast", ROWS),
        ("swe", {"linear": LINEAR, "spectral-transformer-local": SPECTRAL}),
        ("swe", {"spectral-transformer-local-stable": STABLE}),
        ("swe", {"zonal-linear": ZONAL_LINEAR, "zonal-transformer-local": ZONAL}),
        ("forecast", {"linear": LINEAR, "spectral-transformer-local": SPECTRAL}),
    )
    for key, title in rows.items()
}
"""Of all recipes, by name."""
