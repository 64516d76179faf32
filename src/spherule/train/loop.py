"""Training: steps, epochs, checkpoints, and what is done when something goes wrong.

Everything random is a function of the seed and the step, and so is the order of the data: a run
that is stopped anywhere and resumed goes on as if it had not been.
"""

import dataclasses
import math
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader

from spherule.models import Model
from spherule.objectives import MeanStd
from spherule.train import ranks
from spherule.train.batches import Batches, split, to_device
from spherule.train.checkpoint import Checkpoint, write_checkpoint
from spherule.train.journal import Journal
from spherule.train.measure import measure
from spherule.train.memory import explain_memory
from spherule.train.optim import Adam, MovingAverage, Schedule
from spherule.train.task import Log, Task
from spherule.train.training_config import TrainingConfig

PATIENCE_WITH_NAN = 5
"""Bad losses in a row that end a run."""


@dataclasses.dataclass(frozen=True)
class StepEvent:
    """What `on_step` is told after each step, and after each epoch with its validation."""

    step: int
    steps: int
    epoch: int
    loss: float
    learning_rate: float
    samples_per_second: float
    validation: dict[str, MeanStd] | None = None


OnStep = Callable[[StepEvent], None]


class Interrupted(Exception):
    """Ctrl-C or SIGTERM: everything is saved."""


class Trainer:
    """A model on its way. Rank 0 writes checkpoints; all ranks step together."""

    def __init__(
        self,
        task: Task,
        model: Model,
        settings: TrainingConfig,
        checkpoints: Path,
        *,
        rank: int = 0,
        world: int = 1,
        log: Log = print,
    ) -> None:
        self.domain = settings.domain
        self.device = ranks.choose_device(settings.device)
        self.mesh = ranks.make_mesh(self.domain, self.device)
        self.data_rank, self.data_world = rank // self.domain, world // self.domain
        if settings.batch % (self.data_world * settings.accumulate):
            raise ValueError(
                f"batch={settings.batch} must be a multiple of processes ({world}), by domain="
                f"{self.domain}, times accumulate={settings.accumulate}"
            )
        self.settings, self.checkpoints = settings, checkpoints
        self.rank, self.log = rank, log
        self.model = model.to(self.device)
        self.optimizer = Adam(model.parameters(), settings)
        # Of the same Parameters: what is saved is the whole model, what runs may be a part.
        self.task, self.local = ranks.spread_both(task, self.model, self.mesh)
        self.parallel = ranks.wrapped(self.local, self.device)
        self.epoch_steps = max(task.samples // settings.batch, 1)
        self.steps = settings.epochs * self.epoch_steps
        self.schedule = Schedule(settings, self.steps)
        self.average = MovingAverage(self.model, settings.ema)
        self.step, self.bad, self.epoch_loss = 0, 0, 0.0
        self.best: dict[str, Any] = {"step": None, "loss": math.inf}
        self._stop = False

    def restore(self, checkpoint: Checkpoint) -> None:
        """Go on from a checkpoint."""
        state, tensors = checkpoint.state(), checkpoint.tensors()
        part = {
            kind: {n[len(kind) + 1 :]: t for n, t in tensors.items() if n.startswith(kind + ".")}
            for kind in ("optimizer", "weights")
        }
        kept = type(self.model).from_pretrained(checkpoint.path).state_dict()
        self.average.average = (
            {n: kept[n].to(self.device) for n in part["weights"]} if self.settings.ema else {}
        )
        self.model.load_state_dict({**kept, **part["weights"]})
        self.optimizer.restore(part["optimizer"])
        self.schedule.restore(state["schedule"])
        self.step, self.bad, self.epoch_loss = state["step"], state["bad"], state["epoch_loss"]
        self.best = {"step": state["best"], "loss": state["best_loss"]}

    def run(self, journal: Journal | None, on_step: OnStep | None = None) -> None:
        """Train to the end; checkpoints, journal (of rank 0) and validation as it goes."""
        try:
            with self._interruptible():
                self._run(journal, on_step or (lambda event: None))
        except (torch.OutOfMemoryError, MemoryError, RuntimeError) as error:
            explain_memory(error, self.model, self.settings.batch // self.data_world)
            raise

    def _run(self, journal: Journal | None, on_step: OnStep) -> None:
        if self.steps == 0:  # fitted, not trained
            self._end_epoch(-1, journal)
        began, first = time.perf_counter(), self.step
        for batch, numbers in self._batches():
            loss, norm, rate = self._step(batch, numbers, journal)
            self.step += 1
            self.epoch_loss += loss if math.isfinite(loss) else 0.0
            speed = (self.step - first) * self.settings.batch / (time.perf_counter() - began)
            epoch = (self.step - 1) // self.epoch_steps
            if journal is not None:
                journal.write(
                    {"step": self.step, "loss": loss, "learning_rate": rate, "gradient_norm": norm}
                )
            event = StepEvent(self.step, self.steps, epoch, loss, rate, speed)
            on_step(event)
            if self.step % self.epoch_steps == 0:
                paused = time.perf_counter()
                values = self._end_epoch(epoch, journal)
                on_step(dataclasses.replace(event, validation=values))
                began += time.perf_counter() - paused
            elif self.settings.save_every and self.step % self.settings.save_every == 0:
                self.save()
            if ranks.any_rank(self._stop, self.device) and self.step < self.steps:
                if self.step % self.epoch_steps:
                    self.save()
                raise Interrupted(f"stopped after step {self.step} of {self.steps}; all is saved")

    def _step(
        self, batch: Any, numbers: list[int], journal: Journal | None
    ) -> tuple[float, float, float]:
        """One optimizer step; the loss, the gradient's norm, the learning rate."""
        self._seed()
        self.task.begin_step(self.settings.seed, self.step, self.steps)
        rate = self.schedule.rate(self.step)
        self.local.train()
        self.optimizer.zero_grad()
        parts = self.settings.accumulate
        loss = 0.0
        for part in range(parts):
            if part and self.domain > 1:  # dropout has drawn more on ranks with more points
                self._seed(part)
            piece = to_device(split(batch, part, parts), self.device)
            last = part == parts - 1
            with _synchronized(self.parallel, last), self._precision():
                value = self.task.loss(self.parallel, piece).mean() / parts
            # Gradients are averaged over all ranks, but add up over those that share a sample.
            (value * self.domain).backward()
            loss += value.item()
        loss = ranks.mean(loss, self.device)
        norm = torch.nn.utils.clip_grad_norm_(
            self.model.parameters(), math.inf if self.settings.clip is None else self.settings.clip
        ).item()
        if math.isfinite(loss) and math.isfinite(norm):
            self.optimizer.step(rate)
            self.average.update(self.step)
            self.bad = 0
        else:
            self._refuse(loss, norm, numbers, journal)
        return loss, norm, rate

    def _seed(self, *part: int) -> None:
        """Dropout, drop path and noise: their own stream in each step, for each rank's samples."""
        stream = np.random.SeedSequence((self.settings.seed, self.step, self.data_rank, *part))
        torch.manual_seed(int(stream.generate_state(1)[0]))

    def _refuse(
        self, loss: float, norm: float, numbers: list[int], journal: Journal | None
    ) -> None:
        self.bad += 1
        self.log(
            f"step {self.step + 1}: loss {loss:g}, gradient norm {norm:g}: not applied "
            f"(samples {numbers})"
        )
        if journal is not None:
            journal.write({"step": self.step + 1, "refused": numbers})
        if self.bad >= PATIENCE_WITH_NAN:
            raise FloatingPointError(
                f"the loss was not finite in {self.bad} steps in a row, last in step "
                f"{self.step + 1}; the checkpoints are as they were. Try a smaller "
                f"--learning-rate (now {self.schedule.rate(self.step):g}), --clip 1, "
                "--precision float32, or look for bad values in these samples: "
                f"{numbers}"
            )

    def _end_epoch(self, epoch: int, journal: Journal | None) -> dict[str, MeanStd]:
        values = self.validate()
        loss = values["loss"].mean
        self.schedule.observe(loss)
        training = self.epoch_loss / self.epoch_steps if self.steps else None
        self.epoch_loss = 0.0
        if loss < self.best["loss"]:
            self.best = {"step": self.step, "loss": loss}
        if journal is not None:
            journal.write(
                {
                    "step": self.step,
                    "epoch": epoch + 1,
                    "training_loss": training,
                    "validation": {name: dataclasses.asdict(v) for name, v in values.items()},
                }
            )
        self.save()
        return values

    def validate(self) -> dict[str, MeanStd]:
        """Mean and deviation over the validation samples, by the averaged weights."""
        with self.average.applied(), self._precision():
            return measure(
                self.task,
                self.local,
                "validation",
                batch=self.settings.batch,
                rank=self.data_rank,
                world=self.data_world,
                device=self.device,
                group=None if self.mesh is None else self.mesh["data"].get_group(),
            ).compute()

    def save(self) -> None:
        """Write a checkpoint (rank 0)."""
        if self.rank == 0:
            tensors = {f"optimizer.{n}": t for n, t in self.optimizer.tensors().items()}
            state = {
                "step": self.step,
                "bad": self.bad,
                "epoch_loss": self.epoch_loss,
                "best": self.best["step"],
                "best_loss": self.best["loss"],
                "schedule": self.schedule.state(),
            }
            if self.settings.ema:
                own = self.model.named_parameters()
                tensors |= {f"weights.{n}": p.detach().clone() for n, p in own}
            with self.average.applied():
                write_checkpoint(self.checkpoints, self.model, self.step, state, tensors)
        ranks.wait()

    def _batches(self) -> Iterator[tuple[Any, list[int]]]:
        sampler = Batches(
            None if self.task.endless else self.task.samples,
            self.settings.batch,
            self.settings.seed,
            start=self.step,
            stop=self.steps,
            rank=self.data_rank,
            ranks=self.data_world,
        )
        loader = DataLoader(
            self.task.training, batch_sampler=sampler, num_workers=self.settings.workers
        )
        # The whole batch of a step: a bad sample may be another rank's.
        yield from zip(loader, map(sampler.numbers, range(self.step, self.steps)), strict=True)

    def _precision(self) -> Any:
        half = self.settings.precision == "bfloat16"
        return torch.autocast(self.device.type, torch.bfloat16, enabled=half)

    @contextmanager
    def _interruptible(self) -> Iterator[None]:
        """Ctrl-C and SIGTERM end the run after the step; a second Ctrl-C ends it at once."""

        def stop(signum: int, frame: Any) -> None:
            if self._stop and signum == signal.SIGINT:
                raise KeyboardInterrupt
            self._stop = True
            self.log("stopping after this step; once more stops at once, without saving")

        self._stop = False
        try:
            before = {s: signal.signal(s, stop) for s in (signal.SIGINT, signal.SIGTERM)}
        except ValueError:  # not the main thread
            before = {}
        try:
            yield
        finally:
            for signum, handler in before.items():
                signal.signal(signum, handler)


@contextmanager
def _synchronized(model: torch.nn.Module, yes: bool) -> Iterator[None]:
    """Gradients are averaged over ranks in the last part of an accumulated step only."""
    if yes or not isinstance(model, DistributedDataParallel):
        yield
    else:
        with model.no_sync():
            yield
