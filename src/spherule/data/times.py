"""Time as files have it: dates of any calendar or durations, and leads between them."""

import datetime
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import xarray as xr

NAMES = ("time", "valid_time", "time_counter")
MONTH = 365.2425 / 12 * 86400
"""Seconds of a mean month."""
_SECONDS = {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_MICROSECOND = datetime.timedelta(microseconds=1)
_SECOND = 1_000_000
"""In the units of `stamps`."""


@dataclass(frozen=True)
class Lead:
    """From input to target: seconds, calendar months, or steps of the file."""

    number: float
    unit: str
    """s, mo or step."""

    @classmethod
    def parse(cls, text: str) -> "Lead":
        """6h, 30min, 1d, 1mo or 1step."""
        found = re.fullmatch(r"([-+.\d]+) ?([a-z]+)", text)
        try:
            number = float(found[1]) if found else 0.0
            unit = found[2] if found else ""
            lead = cls(number * _SECONDS.get(unit, 1.0), "s" if unit in _SECONDS else unit)
            if lead.unit not in ("s", "mo", "step"):
                raise ValueError
        except ValueError:
            raise ValueError(
                f"lead={text!r}: expected a number and a unit, such as 6h, 30min, 1d, 1mo or 1step"
            ) from None
        if not lead.number > 0:
            raise ValueError(f"lead={text!r} must be positive")
        if lead.unit != "s" and lead.number != round(lead.number):
            raise ValueError(f"lead={text!r}: expected whole months or steps")
        return lead

    def seconds(self, times: NDArray) -> float:
        """How long it is, in the mean: months have several lengths, and so may steps."""
        if self.unit == "mo":
            return self.number * MONTH
        if self.unit == "step":
            return self.number * float(np.median(np.diff(stamps(times)))) / _SECOND
        return self.number

    def places(self, times: NDArray, leads: int) -> NDArray[np.int64]:
        """For each time the places of the axis that lie 0, 1, ... leads later, -1 where none."""
        count = np.arange(leads + 1)
        if self.unit == "step":
            wanted = np.arange(times.size)[:, None] + count * round(self.number)
            return np.where(wanted < times.size, wanted, -1)
        if self.unit == "mo":
            keys = _months(times)
            wanted = keys[:, None] + count * round(self.number)
        else:
            keys = stamps(times)
            wanted = keys[:, None] + count * round(self.number * _SECOND)
        place = np.searchsorted(keys, wanted).clip(max=keys.size - 1)
        return np.where(keys[place] == wanted, place, -1)

    def later(self, times: NDArray) -> NDArray:
        """The times so much later; steps need the length that a run has kept."""
        if self.unit == "mo":
            return _months_later(times, round(self.number))
        if times.dtype == object:
            return times + datetime.timedelta(seconds=self.number)
        return times + np.timedelta64(round(self.number * _SECOND), "us")

    def __str__(self) -> str:
        return span(self.number) if self.unit == "s" else f"{self.number:g} {self.unit}"


def span(seconds: float) -> str:
    """A length of time as people say it: 30 min, 6 h, 5 d."""
    for unit, least in (("d", 2 * 86400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= least or (unit == "d" and seconds == 86400):
            return f"{seconds / _SECONDS[unit]:.4g} {unit}"
    return f"{seconds:.4g} s"


def time_axis(data: "xr.Dataset", source: object) -> "xr.DataArray":
    """The coordinate of time along its dimension, by name or by CF's attributes."""
    along = [
        name
        for name in (*NAMES, *(str(c) for c in data.coords))
        if name in data.coords and data[name].ndim == 1 and _is_time(data[name], name)
    ]
    known = along or [name for name in NAMES if name in data.coords]
    if known and data[known[0]].size == 0:
        raise ValueError(f"{source} has no times: {known[0]} is empty")
    if known and data[known[0]].size == 1:
        raise ValueError(
            f"{source} has 1 time only, and a forecast is learned from states that follow each "
            "other: give a file of several times, or several files as 'directory/*.nc'"
        )
    if not along:
        raise ValueError(
            f"{source} has no coordinate time along a dimension; it has "
            f"{', '.join(map(str, data.coords))}"
        )
    # The dimension's own coordinate first: others, such as reference times, may lie along it too.
    along.sort(key=lambda name: data[name].dims[0] != name or name not in NAMES)
    axis = data[along[0]]
    values = axis.values
    if not _countable(axis):
        raise ValueError(
            f"{source}: {axis.name} is {values.dtype}, expected dates or durations: give it units "
            "such as 'hours since 2000-01-01'"
        )
    if values.dtype.kind in "Mm" and (missing := np.flatnonzero(np.isnat(values))).size:
        raise ValueError(
            f"{source}: {missing.size} of {values.size} times are missing, the first at place "
            f"{missing[0]}"
        )
    if not (np.diff(stamps(values)) > 0).all():
        raise ValueError(f"{source}: {axis.name} must increase")
    return axis


def shifted(data: "xr.Dataset", lead: Lead) -> "xr.Dataset":
    """The same with all that tells the time a lead later."""
    known = [name for name in data.coords if _countable(data[name])]
    axes = [name for name in known if data[name].ndim == 1 and _is_time(data[name], str(name))]
    dims = {dim for name in axes for dim in data[name].dims}
    for name in known:
        time = data[name]
        # Without an axis of time the file has one state, and its time is a number.
        if dims & set(time.dims) if dims else time.ndim == 0 and name in NAMES:
            if time.dtype.kind == "m" and lead.unit == "mo":
                raise ValueError(f"{name} counts durations, which have no months; lead={lead}")
            values = lead.later(np.atleast_1d(time.values)).reshape(time.shape)
            moved = time.copy(data=values)
            moved.encoding = {k: v for k, v in time.encoding.items() if k in ("units", "calendar")}
            data = data.assign_coords({name: moved})
    return data


def stamps(times: NDArray) -> NDArray[np.int64]:
    """Microseconds from the first, of which 64 bits hold more than all years on record."""
    since = times - times[0]
    if since.dtype == object:
        return np.array([t // _MICROSECOND for t in since.ravel()], dtype=np.int64)
    return np.rint(since / np.timedelta64(1, "us")).astype(np.int64)


def length(times: NDArray) -> float:
    """Seconds from the first to the last."""
    return float(stamps(times[[0, -1]])[-1]) / _SECOND


def smallest_step(times: NDArray) -> float:
    """Seconds between neighbors, at least."""
    return float(np.diff(stamps(times)).min()) / _SECOND


def year_part(time: Any) -> float | None:
    """How much of its year has passed, from 0 to 1; durations have none."""
    if getattr(time, "calendar", None) is not None:
        return float(time.dayofyr - 1) / 366
    if getattr(getattr(time, "dtype", None), "kind", "") != "M":
        return None
    day = time.astype("datetime64[D]")
    return float((day - day.astype("datetime64[Y]")).astype(np.int64)) / 366


def text(time: Any) -> str:
    """A time in messages."""
    kind = getattr(getattr(time, "dtype", None), "kind", "")
    if kind == "M":
        return str(time.astype("datetime64[s]"))
    if kind == "m":
        return span(float(time / np.timedelta64(1, "s")))
    return str(time)


def _is_time(variable: "xr.DataArray", name: str) -> bool:
    return (
        name in NAMES
        or variable.attrs.get("standard_name") == "time"
        or variable.attrs.get("axis") == "T"
    )


def _countable(variable: "xr.DataArray") -> bool:
    """Dates or durations; cftime's dates are objects."""
    if variable.dtype == object:
        first = variable.values.flat[0] if variable.size else None
        return hasattr(first, "calendar")
    return variable.dtype.kind in "Mm"


def _months(times: NDArray) -> NDArray[np.int64]:
    """Months of dates, one each: means of months are dated anywhere in them."""
    if times.dtype.kind == "m":
        raise ValueError("lead in months: time counts durations, which have none")
    if times.dtype == object:
        months = np.array([12 * (t.year - 1970) + t.month - 1 for t in times], dtype=np.int64)
    else:
        months = times.astype("datetime64[M]").astype(np.int64)
    if (np.diff(months) < 1).any():
        raise ValueError("lead in months: expected one time a month, got more; take days or steps")
    return months


def _months_later(times: NDArray, count: int) -> NDArray:
    if times.dtype == object:
        moved = np.array([_month_later(t, count) for t in times], dtype=object)
    else:
        month = times.astype("datetime64[M]")
        later = month + np.timedelta64(count, "M")
        # A day that the later month lacks is its last.
        last = (later + np.timedelta64(1, "M")).astype("datetime64[D]") - np.timedelta64(1, "D")
        day = later.astype("datetime64[D]") + (times.astype("datetime64[D]") - month)
        moved = np.minimum(day, last) + (times - times.astype("datetime64[D]"))
    return moved.astype(times.dtype)


def _month_later(time: Any, count: int) -> Any:
    year, month = divmod(12 * time.year + time.month - 1 + count, 12)
    for day in range(time.day, 0, -1):
        try:
            return time.replace(year=year, month=month + 1, day=day)
        except ValueError:  # a day that this month lacks
            continue
    raise AssertionError("every month has a first day")
