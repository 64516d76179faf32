"""ONNX: what has no operators of our own is exported, the rest is refused by name."""

import pytest
import torch

from tests.models.test_models import small

pytest.importorskip("onnxscript", reason="torch.onnx.export needs it")
pytestmark = pytest.mark.filterwarnings("ignore")  # torch's own, about itself


def export(name: str) -> tuple[torch.nn.Module, torch.onnx.ONNXProgram]:
    model = small(name).eval()
    return model, torch.onnx.export(model, (torch.randn(1, 2, 12, 24),), dynamo=True, verbose=False)


def test_a_planar_global_model_gives_the_same_values_in_onnx() -> None:
    from onnx.reference import ReferenceEvaluator

    model, program = export("planar transformer, global")
    x = torch.randn(1, 2, 12, 24)
    proto = program.model_proto
    (y,) = ReferenceEvaluator(proto).run(None, {proto.graph.input[0].name: x.numpy()})
    assert torch.allclose(torch.from_numpy(y), model(x), atol=1e-5)


@pytest.mark.parametrize(
    ("name", "operator"),
    [("spherical transformer, local", "disco"), ("planar transformer, local", "neighborhood_att")],
)
def test_operators_of_our_own_are_refused_by_name(name: str, operator: str) -> None:
    with pytest.raises(
        torch.onnx.OnnxExporterError, match=rf"No ONNX function.*spherule\.{operator}"
    ):
        export(name)
