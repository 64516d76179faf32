from pathlib import Path

import pytest

from spherule import native


def test_a_library_of_another_abi_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    library, _ = native.load()
    assert library is not None
    monkeypatch.setattr(native, "ABI", 99)
    found, why = native._open(library._name)
    assert found is None
    assert f"has ABI {library.spherule_abi()}, but this version needs 99" in why


def test_the_header_and_python_agree_on_the_abi() -> None:
    header = Path(native.__file__).parent / "csrc" / "spherule.h"
    assert f"#define SPHERULE_ABI {native.ABI}\n" in header.read_text()


def test_a_file_that_is_no_library_is_named(tmp_path: Path) -> None:
    path = tmp_path / "_spherule.so"
    path.write_bytes(b"nothing")
    assert native._open(str(path))[1].startswith(f"{path} cannot be loaded")


@pytest.mark.parametrize(("code", "error"), [(1, MemoryError), (2, ValueError), (3, ValueError)])
def test_every_code_is_a_sentence(code: int, error: type, monkeypatch) -> None:
    class Library:
        def spherule_anything(self) -> int:
            return code

    monkeypatch.setattr(native, "load", lambda: (Library(), ""))
    with pytest.raises(error, match=r"^spherule_anything: .{20,}") as raised:
        native.call("spherule_anything")
    assert "keys" not in str(raised.value)
