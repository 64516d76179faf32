"""What the GPU kernels take of a multiprocessor: compiled ahead of time, without a GPU.

Prints the table of docs/gpu.md. Registers, stack and local memory are read from the binaries, as
are tensor-core instructions and accesses to local memory (spills).
"""

import argparse
import re
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from spherule.ops.neighborhood_attention import gpu, triton_backward, triton_forward

TYPES = {torch.bfloat16: "bf16", torch.float16: "fp16", torch.float32: "fp32"}
ARCHITECTURES = (80, 90, 100)
KERNELS = {
    "forward": triton_forward.forward,
    "backward_queries": triton_backward.backward_queries,
    "backward_keys": triton_backward.backward_keys,
}
TABLES = ("programs", "windows", "pairs", "arcs", "splits")
FLOATS = ("lse", "delta", "grad_lse", "numbers", "part", "part_out", "part_lse", "part_dk")
# SASS: Ampere's and later, Hopper's, Blackwell's.
TENSOR_CORE = re.compile(r"\b(HMMA|HGMMA|UTC\w*MMA)\b")
LOCAL = re.compile(r"\b(LDL|STL)\b")


class Resources(NamedTuple):
    registers: int
    local: int
    """Bytes of stack and local memory a thread."""
    shared: int
    """Bytes a block."""
    tensor_core: int
    """Tensor-core instructions."""
    spills: int
    """Instructions that access local memory."""
    warps: int


def resources(
    name: str, dim: int, dtype: torch.dtype, architecture: int, size: tuple[int, int] = (16, 32),
    *, soft: bool = False, masked: bool = False, warps: int | None = None, stages: int = gpu.STAGES,
) -> Resources:  # fmt: skip
    """Of a kernel for heads of `dim` channels, points stored with their channels side by side."""
    block, window = size
    constants = {
        "DIM": dim, "WIDTH": gpu.padded(dim), "VALUE_DIM": dim, "VALUE_WIDTH": gpu.padded(dim),
        "BLOCK": block, "WINDOW": window, "SOFT": soft, "MASKED": masked,
        "PRECISION": "ieee", "LSE": False,
    }  # fmt: skip
    kernel = KERNELS[name]
    signature, attributes = {}, {}
    for place, argument in enumerate(kernel.arg_names):
        if argument in constants or re.fullmatch(r"(q|k|v|o|g|dq|dk|dv)_d", argument):
            constants.setdefault(argument, 1)
            signature[argument] = "constexpr"
        elif re.fullmatch(r"(q|k|v|o|g|dq|dk|dv|mask)_[bhn]", argument):
            signature[argument] = "i32"
            attributes[(place,)] = [["tt.divisibility", 16]]
        elif argument in ("batch_heads", "heads", "queries", "parts"):
            signature[argument] = "i32"
        elif argument in ("scale", "cutoff", "sharpness"):
            signature[argument] = "fp32"
        else:
            kind = "i32" if argument in TABLES else TYPES[dtype]
            kind = "fp32" if argument in (*FLOATS, "part_dv") else kind
            kind = "u8" if argument == "key_mask" else kind
            signature[argument] = f"*{kind}"
            attributes[(place,)] = [["tt.divisibility", 16]]
    constants = {(kernel.arg_names.index(k),): v for k, v in constants.items() if k in signature}
    compiled = triton.compile(
        ASTSource(kernel, signature, constants, attributes),
        target=GPUTarget("cuda", architecture, 32),
        options={"num_warps": warps or gpu.warps(block, gpu.padded(dim)), "num_stages": stages},
    )
    return read(compiled)


def read(compiled: object) -> Resources:
    """From the binary itself."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(compiled.asm["cubin"])
        file.flush()
        usage = subprocess.run(
            [tool("cuobjdump"), "--dump-resource-usage", file.name],
            capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip
        sass = subprocess.run(
            [tool("nvdisasm"), "-c", file.name], capture_output=True, text=True, check=True
        ).stdout
    found = {key: int(value) for key, value in re.findall(r"\b(REG|STACK|LOCAL):(\d+)", usage)}
    return Resources(
        found["REG"],
        found["STACK"] + found["LOCAL"],
        compiled.metadata.shared,
        len(TENSOR_CORE.findall(sass)),
        len(LOCAL.findall(sass)),
        compiled.metadata.num_warps,
    )


def tool(name: str) -> str:
    return str(Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / name)


def rows(dims: list[int], dtypes: list[torch.dtype]) -> Iterator[tuple]:
    for name in KERNELS:
        for dtype in dtypes:
            for dim in dims:
                yield name, dtype, dim, [resources(name, dim, dtype, a) for a in ARCHITECTURES]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dims", type=int, nargs="+", default=[16, 32, 64, 128, 256])
    parser.add_argument("--dtypes", nargs="+", default=["bfloat16", "float16", "float32"])
    options = parser.parse_args()
    print(f"triton {triton.__version__}; cells: sm_80 / sm_90 / sm_100\n")
    print("| kernel | dtype | head dim | warps | registers | spilled bytes | shared bytes | MMA |")
    print("|---|---|---|---|---|---|---|---|")
    for name, dtype, dim, found in rows(options.dims, [getattr(torch, d) for d in options.dtypes]):
        cells = [
            " / ".join(str(getattr(r, field)) for r in found)
            for field in ("registers", "local", "shared", "tensor_core")
        ]
        print(f"| {name} | {TYPES[dtype]} | {dim} | {found[0].warps} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
