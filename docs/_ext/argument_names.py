"""What arguments mean whose docstring does not say it: a name has one meaning throughout, written
here, and others by the name of their function. An argument without any is a warning, and so no
strict build.
"""

import dataclasses
import inspect
import re
from typing import Any

from sphinx.application import Sphinx
from sphinx.pycode import ModuleAnalyzer
from sphinx.util import logging

_logger = logging.getLogger(__name__)
_STARS = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}

MEANINGS = {
    "attention": "on the sphere, with quadrature weights, or as if the grid were an image.",
    "augment": "makes another panorama of one; None leaves all as they are.",
    "batch": "samples, as a DataLoader over the task's data joins them.",
    "batches": "tuples (input, target, ...) of fields `(batch, channels, *grid.shape)`.",
    "bias": "whether a constant is added to each output channel.",
    "channels": "of the field, before and after.",
    "checkpoint": "a directory with a model, and what it takes to go on with its training.",
    "classes": "how many there are.",
    "coeffs": "spherical harmonic coefficients, as `ops.sht` gives them.",
    "config": "all choices, as one value.",
    "confusion": "what `objectives.confusion` gives.",
    "context": "another field, which keys and values are made of; by default `x`.",
    "convolution": "on the sphere (DISCO), or as if the grid were an image.",
    "count": "how many samples.",
    "cutoff": "the radius of each disk, in radians.",
    "depth": "how many blocks.",
    "device": "where it is computed; `auto` is a GPU where there is one.",
    "directory": "of the run.",
    "dropout": "the probability with which values are left out while training.",
    "drop_path": "the probability with which a branch is left out while training.",
    "dt": "the time step.",
    "dtype": "of the result.",
    "edge_width": "over this width around the cutoff the weight falls linearly from 1 to 0.",
    "eps": "added to the variance before its root is divided by.",
    "equation": "what is integrated.",
    "fields": "`(..., variables, *grid.shape)`.",
    "fold": "the name of the fold; None is the random split.",
    "generator": "of the random numbers; by default torch's own.",
    "globe": "what is shown.",
    "grid": "where the field lives.",
    "grids": "in the order of `place`'s arguments; shards of grids for one field over many ranks.",
    "group": "the ranks that take part; by default all.",
    "heads": "of attention; they share the channels evenly.",
    "hours": "from the start.",
    "ignore": "points with this label do not count.",
    "in_channels": "of the input.",
    "index": "its number, from 0.",
    "info": "text that goes into the file.",
    "label_smoothing": "the part of a label's weight that is spread evenly over all classes.",
    "labels": "the true class of each point.",
    "lead": "how far ahead forecasts are, in words.",
    "leads": "how many steps ahead there are targets for.",
    "lmax": "the highest degree.",
    "log": "is told what goes on, a line at a time.",
    "mask": "True where the field counts.",
    "mean": "of the values.",
    "metadata": "what a run keeps of its data: names, units, statistics.",
    "missing": "what pixels without a label are taken for.",
    "mlp_ratio": "hidden channels of the feed-forward parts, in units of the width.",
    "model": "any module that maps the task's inputs to its outputs.",
    "models": "trained, with a title each.",
    "moments": "a row for each sample.",
    "name": "what it is called.",
    "neighborhood": "the keys of each query.",
    "nested": "whether pixels are in HEALPix's nested order; else in ring order.",
    "nlat": "rings of latitude.",
    "nlon": "points on each ring.",
    "nside": "HEALPix's resolution: a sphere has 12 nside^2 pixels.",
    "number": "of the block, from 0.",
    "offset": "of the first longitude from 0, as a part of a cell.",
    "out_channels": "of the output.",
    "out_grid": "where the output lives; by default `grid`.",
    "output": "of the model, for one sample.",
    "path": "of the file or directory.",
    "planet": "its radius, rotation and gravity.",
    "position": "what is added to the field to tell places apart: spherical harmonics, a learned "
    "value a point, sines of the place in the sequence, or nothing.",
    "predicted": "classes of the points, or scores of each class.",
    "prediction": "of the model.",
    "radii": "hats of a filter from its center outward.",
    "radius": "of the sphere.",
    "rank": "of this process.",
    "reach": "degrees on either side that each is found from.",
    "recipe": "a row of a table: a name and what makes its run.",
    "rgb": "colors of the pixels, 0 to 255.",
    "run": "a trained one, from `Run.open`.",
    "sample": "its number, from 0.",
    "samples": "how many; by default all.",
    "scale": "of the logits; by default 1 / sqrt(dim).",
    "scene": "the room.",
    "seed": "all that is random follows from it.",
    "shape": "of what is drawn; the last axes come on top of it.",
    "shards": "the rings of each rank.",
    "size": "rows and columns of the image.",
    "sobolev_weight": "of the semi-norm, beside L1.",
    "spectrum": "C_l, the variance of the coefficients of each degree.",
    "start": "the first.",
    "state": "geopotential, vorticity and divergence, as coefficients.",
    "statistics": "that values are normalized by; by default those of the training samples.",
    "std": "the standard deviation.",
    "step": "its number, from 0.",
    "steps": "how many steps.",
    "stop": "the first that is no longer meant.",
    "target": "the truth.",
    "task": "with its data.",
    "tilt": "in radians.",
    "title": "as tables and figures have it.",
    "u": "the field; points last.",
    "units": "of each variable.",
    "values": "plain values, as JSON has them.",
    "variables": "their names.",
    "weight": "of each output channel, input channel and hat.",
    "width": "channels in each block.",
    "widths": "channels, one number a part.",
    "window": "the side of a square of cells that has the area of a disk, or is attended to.",
    "workers": "processes that help; 0 is this one alone.",
    "world": "how many processes there are.",
    "x": "the field that goes in, channels first.",
    "y": "the state.",
    "AgedShallowWater.days": "the greatest age.",
    "Average.update.valid": "which samples count; by default all.",
    "Average.update.values": "a value a sample of each metric.",
    "BadPanorama.kind": "of damage, in a word.",
    "BadPanorama.name": "of the sample.",
    "BadPanorama.reason": "what was found, in a sentence.",
    "Block.attention": "the first branch.",
    "Block.attention_norm": "before the first branch.",
    "Block.feed_forward": "the second branch.",
    "Block.feed_forward_norm": "before the second branch.",
    "ChannelNorm.device": "of the Parameters.",
    "ChannelNorm.dtype": "of the Parameters.",
    "ChannelNorm.elementwise_affine": "whether channels are scaled and shifted afterwards.",
    "ChannelNorm.normalized_shape": "the number of channels.",
    "ConsecutiveBatches.size": "samples in a batch.",
    "ConsecutiveBatches.start": "the first index.",
    "DepthConfig.open.directory": "where what must be made for it goes.",
    "DiscoConv.after.upsample": "a linear map that treats all channels alike.",
    "DropPath.rate": "the probability.",
    "Equation.tendency": "dy/dt of a state, without the damping.",
    "Fold.test": "areas that the result is reported for.",
    "Fold.val": "areas that choose the best checkpoint.",
    "ForecastConfig.open.directory": "where what must be made for it goes.",
    "ForecastTask.season.part": "of the data.",
    "Frames.every.stride": "from one frame that is kept to the next.",
    "Frames.labels": "what stands at the slider, a text a frame.",
    "Frames.name": "of the slider.",
    "Globe.frames": "that all variables share.",
    "Globe.image": "below what is drawn.",
    "Globe.inside": "seen from the center of the sphere.",
    "Globe.variables": "of which one is shown at a time.",
    "Grid.from_rings.nphi": "points on each ring.",
    "Grid.from_rings.partial": "whether the rings may cover a part of the sphere.",
    "Grid.from_rings.phi0": "the first longitude of each ring, in radians.",
    "Grid.from_rings.ring_weights": "the area that a point of each ring stands for.",
    "Grid.from_rings.theta": "the colatitude of each ring, in radians.",
    "Grid.reduced_gaussian.n": "rings between a pole and the equator.",
    "Hits.distance": "from the camera.",
    "Hits.surface": "the number of what was hit.",
    "Hits.take.rays": "numbers of those to keep.",
    "Image.rgb": "uint8, `(frames, *grid.shape, 3)`.",
    "LinearFit.deviation": "of what is left of each target channel.",
    "LinearFit.weight": "that fits best.",
    "Match.cyclic": "whether the last column repeats the first.",
    "Match.flip": "whether rows are in the opposite order.",
    "Match.order": "a permutation of the points, where there is one coordinate a point.",
    "Match.roll": "columns to the east.",
    "MeanStd.count": "of samples.",
    "Mlp.hidden": "channels between the two maps.",
    "Model.predict_masked.mask": "`(batch, *grid.shape)`, True where the field counts.",
    "Neighborhood.indices.i": "the query.",
    "Neighborhood.ring.r": "the ring of queries.",
    "Neighborhood.transposed": "whether queries and keys have changed places.",
    "Neighborhood.weights.i": "the query.",
    "Neighborhood.window.shape": "rows and columns of the plane.",
    "Neighborhood.window.size": "rows and columns of the window, odd.",
    "PanoramaDataset.split": "the part of the store, or all of it.",
    "PanoramaStatistics.class_frequencies": "the part of the sphere that each class covers.",
    "PanoramaStatistics.depth_mean": "in meters.",
    "PanoramaStatistics.depth_std": "the standard deviation, in meters.",
    "PanoramaStatistics.rgb_mean": "of each channel.",
    "PanoramaStatistics.rgb_std": "the standard deviation of each channel.",
    "Placed.set_table.table": "its values.",
    "PlanarAttention.out_bias": "whether the last projection adds a constant.",
    "PlanarAttention.window": "the side of the square that is attended to; None is all points.",
    "PlanarConv.groups": "of channels, that are convolved apart from each other.",
    "PlanarConv.kernel": "its side, in points.",
    "PlanarResample.source": "the grid of the input.",
    "PlanarResample.target": "the grid of the output.",
    "Projection.split.rows": "lay each part out point by point in memory, as attention reads it.",
    "Projection.split.some": "of the output channels: those that are wanted.",
    "Recipe.make": "makes the run of a size such as `tiny`.",
    "Resample.place.source": "the grid of the input.",
    "Resample.place.target": "the grid of the output.",
    "Resample.source": "the grid of the input.",
    "Resample.target": "the grid of the output.",
    "Run.metadata": "names, units and statistics of its data.",
    "Run.open.which": "checkpoint.",
    "RunConfig.model": "the architecture.",
    "RunConfig.recipe": "the name of the recipe.",
    "RunConfig.training": "how it is trained.",
    "RunDirectory.at.step": "steps that were done.",
    "RunDirectory.journal.after": "the last step that is kept.",
    "Scene.camera": "where it stands.",
    "Scene.exposure": "a factor of all light.",
    "Scene.lamps": "inside the room.",
    "Scene.materials": "of the surfaces.",
    "Scene.openings": "windows and doors in the walls.",
    "Scene.pieces": "of furniture.",
    "Scene.size": "of the room along x, y and z.",
    "Scene.sun": "what comes in from outside, if anything does.",
    "Scene.surfaces": "a class and a material each.",
    "Scores.bias": "mean error.",
    "Scores.rmse": "root mean square error.",
    "Scores.samples": "over how many.",
    "Segformer.place.stage_grids": "where each stage runs.",
    "SegformerConfig.depths": "blocks of each stage.",
    "SegformerConfig.heads": "of each stage's attention.",
    "SegformerConfig.widths": "channels of each stage.",
    "SegmentationConfig.open.directory": "where what must be made for it goes.",
    "ShallowWater.damping_power": "the power of the Laplacian that damps.",
    "ShallowWater.damping_time": "in which degree lmax falls by a factor e, in seconds; None is "
    "no damping.",
    "ShallowWater.integrator": "how it is stepped in time.",
    "ShallowWater.tilt": "the angle between the axis of rotation and that of the coordinates.",
    "ShallowWater.topography": "coefficients of the ground's geopotential.",
    "ShallowWater.trajectory.every": "steps from one state that is given to the next.",
    "ShallowWaterTaskConfig.open.directory": "where what must be made for it goes.",
    "ShallowWaterTaskConfig.test_samples": "how many there are.",
    "ShallowWaterTaskConfig.validation_samples": "how many there are.",
    "SphericalAttention.forward.key_mask": "True where keys count.",
    "SphericalAttention.place.query_grid": "where queries are; by default `grid`.",
    "StanfordSource.labels": "of a pixel: the nearest one's, or the majority's.",
    "StanfordSource.root": "the directory with the areas in it.",
    "Statistics.from_metadata.prefix": "of the names in it.",
    "Statistics.mean": "of each variable.",
    "Statistics.std": "the standard deviation of each variable.",
    "StepEvent.epoch": "its number, from 0.",
    "StepEvent.learning_rate": "of this step.",
    "StepEvent.loss": "the mean over the batch.",
    "StepEvent.samples_per_second": "since it was begun or resumed, without validation.",
    "StepEvent.step": "steps that are done.",
    "StepEvent.steps": "of the whole training.",
    "StepEvent.validation": "metrics over the validation samples, after an epoch.",
    "Task.begin_step.steps": "of the whole training.",
    "Task.following.state": "that the forecast started from.",
    "Task.step.state": "inputs, as the task's data have them.",
    "TaskConfig.open.directory": "where what must be made for it goes.",
    "TaskConfig.predict.source": "the file, or what the task reads in its place.",
    "TaskConfig.predict.target": "the file to write.",
    "Trainer.checkpoints": "the directory that they are written to.",
    "Trainer.run.journal": "to which every step is written.",
    "Trainer.run.on_step": "is called after every step.",
    "Trainer.settings": "how the model is trained.",
    "TrainingConfig.learning_rate": "the highest.",
    "TrainingConfig.optimizer": "Adam, or Adam with decay apart from the gradient.",
    "TrainingConfig.patience": "epochs without a better validation, before the rate falls.",
    "TrainingConfig.weight_decay": "of the optimizer.",
    "Transformer.place.latent_grid": "where attention runs.",
    "Variable.classes": "names and colors, where values are places in this list.",
    "Variable.frames.source": "its name.",
    "Variable.sources": "fields by the name of what they come from.",
    "Variable.truth": "the name of the source that others are compared with.",
    "Variable.units": "of the values.",
    "VisionTransformerConfig.patch": "the side of a patch, in points.",
    "attention_weights.k": "keys.",
    "attention_weights.q": "queries.",
    "attention_weights.queries": "numbers of the chosen ones.",
    "confusion.grid": "where the field lives, or its shards over ranks.",
    "cross_entropy.class_weights": "factors of the area of each class.",
    "cross_entropy.logits": "scores of each class.",
    "disco.stencil": "hats, and the grids on either side.",
    "evaluate.batch": "samples at a time.",
    "evaluate.task": "where it is open already.",
    "evaluated.directories": "of the runs.",
    "galewsky.perturbed": "whether there is the bump.",
    "galewsky_jet.lat": "latitudes, in radians.",
    "globe_section.room": "bytes that the page may take.",
    "image_grid.columns": "of pixels.",
    "image_grid.rows": "of pixels.",
    "matern_spectrum.length": "the correlation length, in radians.",
    "matern_spectrum.smoothness": "the greater, the faster the spectrum falls.",
    "measure.batch": "samples at a time.",
    "measure.part": "of the data.",
    "place.module": "the layer or model.",
    "point_variance.spectrum": "C_l of each degree.",
    "predict.source": "the user's file, or a Dataset.",
    "predict.target": "the file to write.",
    "random_states.preset": "means and deviations, or their name.",
    "render.rotation": "the matrix R; by default none.",
    "score.batch": "samples at a time.",
    "spectral_filter.response": "a factor for each degree.",
    "trace.directions": "unit vectors.",
    "vorticity_divergence.wind": "eastward and northward, `(..., 2, *grid.shape)`.",
    "wind.divergence": "its coefficients.",
    "wind.vorticity": "its coefficients.",
    "write_panoramas.bad": "what to do with samples that can't be used.",
    "write_panoramas.config": "says what the source is, in plain values.",
    "write_panoramas.folds": "areas that each holds out.",
    "write_panoramas.source": "of the panoramas.",
}


def _field_docs(cls: type) -> dict[str, tuple[type, str]]:
    """For each field, the class that describes it, and how."""
    found: dict[str, tuple[type, str]] = {}
    for base in cls.__mro__:
        if not dataclasses.is_dataclass(base):
            continue
        docs = ModuleAnalyzer.for_module(base.__module__).find_attr_docs()
        for (owner, name), lines in docs.items():
            if owner == base.__name__:
                found.setdefault(name, (base, " ".join(lines).strip()))
    return found


def described(obj: Any, lines: list[str]) -> tuple[list[str], list[str]]:
    """The lines of `Args:` for what a docstring leaves out, and the names that nobody describes."""
    try:
        parameters = inspect.signature(obj).parameters.values()
    except (TypeError, ValueError):
        return [], []
    text = "\n".join(lines)
    fields = _field_docs(obj) if inspect.isclass(obj) else {}
    given, unknown = [], []
    for parameter in parameters:
        name, stars = parameter.name, _STARS.get(parameter.kind, "")
        if name in ("self", "args", "kwargs") or re.search(rf"^ +{name}: ", text, re.MULTILINE):
            continue
        if name in fields:
            owner, meaning = fields[name]
            if owner is obj:  # stands below, with the class's other members
                continue
        else:
            meaning = MEANINGS.get(f"{obj.__qualname__}.{name}") or MEANINGS.get(name, "")
        if meaning:
            given.append(f"    {stars}{name}: {meaning}")
        else:
            unknown.append(name)
    return given, unknown


def _process(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    home = (getattr(obj, "__module__", None) or "").partition(".")[0]
    if what not in ("class", "exception", "function", "method") or not name.startswith(home + "."):
        return
    given, unknown = described(obj, lines)
    for argument in unknown:
        _logger.warning("%s: nothing says what %s is", name, argument, type="argument")
    if given:
        start = next((i + 1 for i, line in enumerate(lines) if line.strip() == "Args:"), None)
        if start is None:
            example = next((i for i, x in enumerate(lines) if x.startswith(">>>")), len(lines))
            lines[example:example] = ["", "Args:", *given, ""]
        else:
            lines[start:start] = given


def setup(app: Sphinx) -> dict[str, bool]:
    app.setup_extension("sphinx.ext.autodoc")
    # Before plain_docstrings, which knows what backticks mean.
    app.connect("autodoc-process-docstring", _process, priority=50)
    return {"parallel_read_safe": True}
