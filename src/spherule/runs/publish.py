"""A run's model on the Hugging Face Hub, with a card that says how it was made."""

import json

from spherule import checks
from spherule.models.hub import model_card
from spherule.runs.evaluation import evaluate
from spherule.runs.run import Run
from spherule.train.files import read_json
from spherule.train.task import Log


@checks.arguments
def publish(run: Run, address: str, *, device: str = "auto", log: Log = print) -> str:
    """Send a run's model to `hf://owner/name`; the address of the commit is what
    `models.from_pretrained` takes.

    Args:
        run: an opened run; its evaluation is made where there is none of this checkpoint.
        address: `hf://owner/name`; the repository is created where it does not exist.
        device: where the evaluation runs.
        log: gets what is to be said on the way.
    """
    return run.model.save_pretrained(address, card=run_card(run, device=device, log=log))


def run_card(run: Run, *, device: str = "auto", log: Log = print) -> str:
    """The model's card: what it is, what it reached on test samples, and all of its run."""
    path = run.directory.evaluation
    result = read_json(path) if path.exists() else {}
    if result.get("step") != run.checkpoint.step:
        result = evaluate(run, device=device, log=log)
    rows = "\n".join(
        f"| {result['columns'].get(name, name)} | {value['mean']:.4g} ± {value['std']:.2g} |"
        for name, value in result["test"].items()
    )
    on = ", ".join(f"{name} {value}" for name, value in result["measured_on"].items())
    asked = json.dumps(run.config.to_dict(), indent=2, ensure_ascii=False)
    return model_card(
        run.model,
        "## On test samples\n",
        f"Mean and deviation over samples; {on}.\n\n| | |\n|---|---|\n{rows}\n",
        "## How it was made\n",
        f"Recipe `{run.name}`, step {run.checkpoint.step}, torch {result['torch']}.",
        f"`spherule train --config` takes this:\n\n```json\n{asked}\n```\n",
    )
