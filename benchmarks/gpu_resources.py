"""What the GPU kernels take of a multiprocessor: compiled ahead of time, without a GPU.

Prints the table of docs/gpu.md. Registers, stack and local memory are read from the binaries, as
are tensor-core instructions and accesses to local memory (spills).
"""

import argparse
import re
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from spherule import cuda
from spherule.ops.disco import gpu as disco
from spherule.ops.disco import triton_kernels
from spherule.ops.neighborhood_attention import gpu, triton_backward, triton_forward

TYPES = {torch.bfloat16: "bf16", torch.float16: "fp16", torch.float32: "fp32"}
ARCHITECTURES = (80, 90, 100)
ATTENTION = {
    "forward": triton_forward.forward,
    "backward_queries": triton_backward.backward_queries,
    "backward_keys": triton_backward.backward_keys,
    "merge": triton_forward.merge,
    "add_parts": triton_backward.add_parts,
}
PASSES = list(ATTENTION)[:3]
"""Those that do the work."""
CONVOLUTION = {
    "convolve": triton_kernels.convolve,
    "correlate": triton_kernels.correlate,
}
TABLES = ("programs", "splits", "tiles", "windows", "bits", "rings", "sources", "start", "shape")
FLOATS = ("lse", "delta", "grad_lse", "numbers", "values", "part", "part_out", "part_lse")
NUMBERS = ("scale", "cutoff", "sharpness")
FIELDS = ("q", "k", "v", "out", "grad_out", "dq", "dk", "dv", "x", "weight", "y", "dy")
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
    name: str,
    dim: int,
    dtype: torch.dtype,
    architecture: int,
    size: tuple[int, int] = (16, 32),
    **constants: bool | str,
) -> Resources:
    """Of a kernel for heads of `dim` channels, or for convolutions from and to as many, channels of
    a point side by side. `constants` are the kernel's own, in capitals.
    """
    block, window = size
    given = constants
    if name in ATTENTION:
        kernel, width = ATTENTION[name], cuda.padded(dim)
        constants = {"DIM": dim, "WIDTH": width, "VALUE_DIM": dim, "VALUE_WIDTH": width}
        constants |= {"BLOCK": block, "WINDOW": window, "SOFT": False, "MASKED": False}
        constants |= {"LSE": False, "PRECISION": "ieee"}
        warps = gpu.warps(block, width, dtype, forward=name == "forward")
        options = {"num_warps": warps, "num_stages": gpu.STAGES}
    else:
        kernel = CONVOLUTION[name]
        constants = disco.options(9, dim, dim, shifts=True, depthwise=False)
        options = {"num_warps": constants.pop("num_warps")}
    constants |= {n: 1 for n in kernel.arg_names if n.endswith("_d")} | given
    signature, attributes = {}, {}
    for place, argument in enumerate(kernel.arg_names):
        signature[argument] = kind(argument, dtype, constants)
        # As at a launch: pointers and strides that are multiples of 16 are known to be.
        if signature[argument].startswith("*") or re.search("_[bhn]$", argument):
            attributes[(place,)] = [["tt.divisibility", 16]]
    places = {(kernel.arg_names.index(n),): v for n, v in constants.items() if n in signature}
    source = ASTSource(kernel, signature, places, attributes)
    target = GPUTarget("cuda", architecture, 32)
    return read(triton.compile(source, target=target, options=options))


def kind(argument: str, dtype: torch.dtype, constants: dict) -> str:
    """The type of a kernel's argument."""
    if argument in constants:
        return "constexpr"
    if argument in FIELDS:
        return f"*{TYPES[dtype]}"
    if argument in (*FLOATS, "part_dk", "part_dv"):
        return "*fp32"
    if argument == "angles":
        return "*i64"
    if argument in TABLES:
        return "*i32"
    if argument == "key_mask":
        return "*u8"
    return "fp32" if argument in NUMBERS else "i32"


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


def row(name: str, dtype: torch.dtype, dim: int, what: str = "", **options) -> None:
    found = [resources(name, dim, dtype, a, **options) for a in ARCHITECTURES]
    fields = ("registers", "local", "shared", "tensor_core")
    cells = [" / ".join(str(getattr(r, field)) for r in found) for field in fields]
    print(f"| {name}{what} | {TYPES[dtype]} | {dim} | {found[0].warps} | {' | '.join(cells)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dims", type=int, nargs="+", default=[16, 32, 64, 128, 256])
    parser.add_argument("--dtypes", nargs="+", default=["bfloat16", "float16", "float32"])
    options = parser.parse_args()
    print(f"triton {triton.__version__}; cells: sm_80 / sm_90 / sm_100\n")
    print("| kernel | dtype | head dim | warps | registers | spilled bytes | shared bytes | MMA |")
    print("|---|---|---|---|---|---|---|---|")
    dtypes = [getattr(torch, name) for name in options.dtypes]
    for name in PASSES:
        for dtype in dtypes:
            for dim in options.dims:
                row(name, dtype, dim)
    for name in PASSES:
        row(name, torch.bfloat16, 64, ", soft edge and mask", SOFT=True, MASKED=True)
        row(name, torch.bfloat16, 64, ", tiles of 64", size=(64, 32))
    for name in CONVOLUTION:
        for dtype in dtypes:
            row(name, dtype, 64)


if __name__ == "__main__":
    main()
