"""Values by their names, for programs that can hold names only."""

from collections import OrderedDict
from threading import Lock
from typing import Generic, TypeVar
from weakref import WeakValueDictionary

Value = TypeVar("Value")


class Names(Generic[Value]):
    """All values that someone holds, and the `recent` ones that perhaps nobody does: a compiled or
    exported program finds what it names, and what is not used any more is freed.
    """

    def __init__(self, recent: int) -> None:
        self._most = recent
        self._held: WeakValueDictionary[str, Value] = WeakValueDictionary()
        self._recent: OrderedDict[str, Value] = OrderedDict()
        self._lock = Lock()

    def get(self, name: str) -> Value | None:
        value = self._held.get(name)
        return None if value is None else self.add(name, value)

    def add(self, name: str, value: Value) -> Value:
        """The value of this name: this one, or another that had it before."""
        with self._lock:
            value = self._held.setdefault(name, value)
            self._recent[name] = value
            self._recent.move_to_end(name)
            if len(self._recent) > self._most:
                self._recent.popitem(last=False)
        return value
