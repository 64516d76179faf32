"""The Hub through stand-ins of its API, of its package and of its server: no network is at hand."""

import inspect
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch

from spherule import models
from spherule.models.hub import CARD
from spherule.models.pretrained import CONFIG, WEIGHTS
from tests.models.hub_server import hub_server
from tests.models.test_models import small

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class StandIn(ModuleType):
    """Repositories as directories, one a commit. Calls must fit the real signatures where the
    package is installed.
    """

    def __init__(self, root: Path) -> None:
        super().__init__("huggingface_hub")
        self.root, self.calls = root, []

    def snapshot_download(self, repo_id: str, **options: Any) -> str:
        self.calls.append(("snapshot_download", (repo_id,), options))
        source = self.root / repo_id / options["revision"]
        target = self.root / "cache"
        target.mkdir(exist_ok=True)
        for name in options["allow_patterns"]:
            shutil.copy(source / name, target)
        return str(target)

    def HfApi(self) -> "StandIn":
        return self

    def create_repo(self, repo_id: str, **options: Any) -> None:
        self.calls.append(("create_repo", (self, repo_id), options))
        (self.root / repo_id).mkdir(parents=True, exist_ok=options["exist_ok"])

    def upload_folder(self, **options: Any) -> SimpleNamespace:
        self.calls.append(("upload_folder", (self,), options))
        shutil.copytree(options["folder_path"], self.root / options["repo_id"] / COMMIT)
        return SimpleNamespace(oid=COMMIT)


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StandIn:
    stand_in = StandIn(tmp_path / "hub")
    monkeypatch.setitem(sys.modules, "huggingface_hub", stand_in)
    return stand_in


def test_what_is_sent_comes_back(hub: StandIn) -> None:
    model = small("spherical transformer, local").eval()
    address = model.save_pretrained("hf://someone/waves")
    assert address == f"hf://someone/waves@{COMMIT}"
    again = models.from_pretrained(address).eval()
    x = torch.randn(1, 2, 12, 24)
    assert torch.equal(again(x), model(x))


def test_only_weights_config_and_card_travel(hub: StandIn) -> None:
    model = small("spherical transformer, local")
    models.from_pretrained(model.save_pretrained("hf://someone/waves"))
    sent = sorted(p.name for p in (hub.root / "someone/waves" / COMMIT).iterdir())
    assert sent == ["README.md", "config.json", "model.safetensors"]
    fetched = sorted(p.name for p in (hub.root / "cache").iterdir())
    assert fetched == ["config.json", "model.safetensors"]
    assert hub.calls[-1][2]["revision"] == COMMIT


def test_card_says_what_the_model_is(hub: StandIn) -> None:
    small("spherical transformer, local").save_pretrained("hf://someone/waves")
    card = (hub.root / "someone/waves" / COMMIT / "README.md").read_text()
    assert card.startswith("---\nlibrary_name: spherule\n")
    assert "# Transformer on gauss:12x24" in card


@pytest.mark.parametrize("address", ["hf://someone/waves", "hf://someone/waves@main", "hf://waves"])
def test_a_model_without_a_commit_is_refused(address: str, hub: StandIn) -> None:
    with pytest.raises(ValueError, match=r"expected hf://\w+/\w+.*40 digits"):
        models.from_pretrained(address)
    assert not hub.calls


def test_a_commit_cannot_be_overwritten(hub: StandIn) -> None:
    with pytest.raises(ValueError, match="a commit is made, not given"):
        small("spherical transformer, local").save_pretrained(f"hf://someone/waves@{COMMIT}")
    assert not hub.calls


def test_calls_fit_the_real_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = pytest.importorskip("huggingface_hub")
    functions = {
        "snapshot_download": real.snapshot_download,
        "create_repo": real.HfApi.create_repo,
        "upload_folder": real.HfApi.upload_folder,
    }
    stand_in = StandIn(tmp_path)
    monkeypatch.setitem(sys.modules, "huggingface_hub", stand_in)
    model = small("spherical transformer, local")
    models.from_pretrained(model.save_pretrained("hf://someone/waves"))
    assert len(stand_in.calls) == 3
    for name, arguments, options in stand_in.calls:
        inspect.signature(functions[name]).bind(*arguments, **options)


CLIENT = """
import torch
from spherule import models
from tests.models.test_models import small

model = small("spherical transformer, local").eval()
address = model.save_pretrained("hf://someone/waves")
again = models.from_pretrained(address).eval()
x = torch.randn(1, 2, 12, 24)
assert torch.equal(again(x), model(x))
print(address)
"""


def test_the_real_client_sends_and_fetches(tmp_path: Path) -> None:
    pytest.importorskip("huggingface_hub")
    with hub_server() as server:
        result = subprocess.run(
            [sys.executable, "-c", CLIENT],
            env={
                **os.environ,
                "HF_ENDPOINT": server.endpoint,
                "HF_HOME": str(tmp_path),
                "HF_TOKEN": "hf_nobody",
                "NO_PROXY": "*",
            },
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
    assert result.returncode == 0, result.stderr[-2000:]
    ((repository, commit),) = server.commits
    assert result.stdout.strip().splitlines()[-1] == f"hf://{repository}@{commit}"
    assert sorted(server.commits[repository, commit]) == sorted([CARD, CONFIG, WEIGHTS])
    fetched = {path.rpartition("/")[2] for method, path in server.asked if "/resolve/" in path}
    assert fetched == {CONFIG, WEIGHTS}
