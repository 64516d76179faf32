"""Out of memory: say how much a step needs."""

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

from spherule.models import Model

_SIGNS = ("out of memory", "can't allocate memory", "not enough memory")


def explain_memory(error: BaseException, model: Model, batch: int) -> None:
    """Raise a MemoryError that says what to do, if `error` is about memory; else do nothing."""
    known = isinstance(error, (torch.OutOfMemoryError, MemoryError))
    if not known and not any(sign in str(error).lower() for sign in _SIGNS):
        return
    need = step_bytes(model, batch)
    raise MemoryError(
        f"out of memory: a step with {batch} samples on {model.grid.name} needs about "
        f"{need / 1e9:.2g} GB. Try a smaller --batch, --accumulate {batch} (the same batch in "
        "parts), --model.checkpoint True (activations are computed twice), or --precision bfloat16"
    ) from error


def step_bytes(model: Model, batch: int) -> float:
    """What one training step holds at most, estimated: weights, gradients and Adam's two moments,
    and what the backward pass keeps of the forward pass.
    """
    weights = sum(p.numel() * p.element_size() for p in model.parameters())
    kept: dict[int, int] = {}

    def note(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        kept[storage._cdata] = storage.nbytes()
        held.append(tensor)
        return tensor

    held: list[Tensor] = []
    device = next(model.parameters()).device
    # Shapes alone: nothing is computed and nothing is allocated.
    with FakeTensorMode(allow_non_fake_inputs=True):
        x = torch.empty(batch, model.in_channels, *model.grid.shape, device=device)
        with torch.autograd.graph.saved_tensors_hooks(note, lambda t: t), torch.enable_grad():
            model(x)
    own = {p.untyped_storage()._cdata for p in model.parameters()}
    return 4 * weights + sum(size for key, size in kept.items() if key not in own)
