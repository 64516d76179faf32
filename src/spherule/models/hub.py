"""Models on the Hugging Face Hub, at addresses such as `hf://owner/name@commit`."""

import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from spherule.models.pretrained import CONFIG, WEIGHTS, save
from spherule.optional import require

if TYPE_CHECKING:
    from spherule.models.base import Model

CARD = "README.md"
_ADDRESS = re.compile(r"hf://([\w.-]+/[\w.-]+)(?:@([0-9a-f]{40}))?")


def is_address(where: str | Path) -> bool:
    """Whether this means the Hub; anything else is a directory."""
    return isinstance(where, str) and where.startswith("hf://")


def download(address: str) -> Path:
    """The directory of a model in the Hub's cache. Two files are fetched, weights and config, of
    the commit that the address names: whoever may write there can change neither later.
    """
    repository, commit = _parse(address)
    if commit is None:
        raise ValueError(
            f"{address!r} names no commit, so what it means could change: expected "
            f"hf://{repository}@ and the 40 digits of one, which save_pretrained returned and the "
            "model's page shows"
        )
    hub = require("huggingface_hub", "a model from the Hub")
    files = [WEIGHTS, CONFIG]
    return Path(hub.snapshot_download(repository, revision=commit, allow_patterns=files))


def upload(model: "Model", address: str, card: str | None) -> str:
    """Send weights, config and card; the address of the commit that has them."""
    repository = require_target(address)
    hub = require("huggingface_hub", "a model on the Hub").HfApi()
    with TemporaryDirectory() as directory:
        save(model, Path(directory))
        text = model_card(model) if card is None else card
        Path(directory, CARD).write_text(text, encoding="utf-8")
        hub.create_repo(repository, exist_ok=True)
        done = hub.upload_folder(
            repo_id=repository,
            folder_path=directory,
            commit_message=f"{type(model).__name__} on {model.grid.name}",
        )
    return f"hf://{repository}@{done.oid}"


def require_target(address: str) -> str:
    """The repository that a model can be sent to."""
    repository, commit = _parse(address)
    if commit is not None:
        raise ValueError(f"{address!r}: a commit is made, not given; expected hf://{repository}")
    require("huggingface_hub", "a model on the Hub")
    return repository


def model_card(model: "Model", *sections: str, address: str = "") -> str:
    """What the Hub shows of a model: what it is, and sections that whoever trained it can add. It
    is found at an address of its own, on the Hub unless said.
    """
    on_hub = "hf://OWNER/NAME@COMMIT", "  # this page's; pip install 'spherule[hub]'"
    where, comment = (address, "") if address else on_hub
    parameters = sum(p.numel() for p in model.parameters())
    head = f"""---
library_name: spherule
tags: [sphere, attention]
---

# {type(model).__name__} on {model.grid.name}

{model.in_channels} channels in, {model.out_channels} out, {parameters:,} parameters.

```python
from spherule import models

model = models.from_pretrained("{where}"){comment}
```
"""
    return "\n".join([head, *sections])


def _parse(address: str) -> tuple[str, str | None]:
    if not (found := _ADDRESS.fullmatch(address)):
        raise ValueError(
            f"{address!r}: expected hf://owner/name, or hf://owner/name@ and a commit's 40 digits"
        )
    return found[1], found[2]
