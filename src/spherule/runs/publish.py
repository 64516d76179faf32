"""A run's model for others: in a directory or on the Hugging Face Hub, with a card that says how it
was made.
"""

import json
from pathlib import Path
from typing import Any

from spherule import checks
from spherule.files import write_json, write_whole
from spherule.models import hub
from spherule.runs.directory import RunDirectory
from spherule.runs.evaluation import evaluate, kept_evaluation
from spherule.runs.run import Run
from spherule.train.task import Log


@checks.arguments
def publish(
    run: Run, target: str | Path, *, notes: str = "", device: str = "auto", log: Log = print
) -> str:
    """Give a run's model to others; what `models.from_pretrained` takes is returned. Of a directory
    `Run.open` and the commands on runs make as much as of the run itself.

    Args:
        run: an opened run; its evaluation is made where there is none of this checkpoint.
        target: a directory, or `hf://owner/name`; what does not exist is created.
        notes: Markdown that goes into the card: limits, license, data.
        device: where the evaluation runs.
        log: gets what is to be said on the way.
    """
    to_hub = hub.is_address(target)
    if to_hub:
        hub.require_target(str(target))
    result = _evaluation(run, device, log)
    if to_hub:
        return run.model.save_pretrained(target, card=run_card(run, result, notes))
    where = RunDirectory(Path(target))
    if where.config.exists() and not where.published.exists():
        raise ValueError(f"target={str(target)!r} holds something else; name another directory")
    # First, so that what a full disk cuts short can be begun again.
    where.path.mkdir(parents=True, exist_ok=True)
    kept = {
        "config": run.config.to_dict(),
        "metadata": run.metadata,
        "step": run.checkpoint.step,
    }
    write_json(where.published, kept)
    run.model.save_pretrained(where.path)
    write_json(where.evaluation, result)
    epochs = [record for record in run.directory.records() if "validation" in record]
    write_whole(where.metrics, "".join(json.dumps(record) + "\n" for record in epochs))
    write_whole(where.path / hub.CARD, run_card(run, result, notes, str(target)))
    return str(target)


def run_card(run: Run, result: dict[str, Any], notes: str = "", address: str = "") -> str:
    """The model's card: what it is, what it reached on test samples, and all of its run."""
    rows = "\n".join(
        f"| {result['columns'].get(name, name)} | {value['mean']:.4g} ± {value['std']:.2g} |"
        for name, value in result["test"].items()
    )
    on = ", ".join(f"{name} {value}" for name, value in result["measured_on"].items())
    asked = json.dumps(run.config.to_dict(), indent=2, ensure_ascii=False)
    return hub.model_card(
        run.model,
        *([f"{notes.strip()}\n"] if notes.strip() else []),
        "## On test samples\n",
        f"Mean and deviation over samples; {on}.\n\n| | |\n|---|---|\n{rows}\n",
        "## How it was made\n",
        f"Recipe `{run.name}`, step {run.checkpoint.step}, torch {result['torch']}.",
        f"`spherule train --config` takes this:\n\n```json\n{asked}\n```\n",
        address=address,
    )


def _evaluation(run: Run, device: str, log: Log) -> dict[str, Any]:
    return kept_evaluation(run) or evaluate(run, device=device, log=log)
