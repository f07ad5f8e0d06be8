"""Whose fetch was it, training's or an evaluation's? A pure machine: fetches in, spans out.

A pass is one iteration over one data loader. A pass of training leads to a backward pass or an
optimizer step; one that does not was an evaluation. Fetches without gradients never get here.
"""

from collections import Counter
from collections.abc import Hashable
from typing import Final, NamedTuple

KEPT_FETCHES: Final = 4096
"""Fetches of one undecided pass that are kept (assumed: more than any loader is read ahead)."""


class Fetch(NamedTuple):
    """One call of `next()` on a loader."""

    wall_ns: int
    mono_ns: int
    duration_ns: int

    @property
    def end_ns(self) -> int:
        """Monotonic end, ns."""
        return self.mono_ns + self.duration_ns


class Found(NamedTuple):
    """A span to record."""

    name: str
    fetch: Fetch


class _Pass:
    """An iteration that nothing has been learnt from yet."""

    def __init__(self, first: Fetch) -> None:
        self.fetches = [first]
        self.count = 1
        self.end_ns = first.end_ns

    def add(self, fetch: Fetch) -> None:
        self.count += 1
        self.end_ns = fetch.end_ns
        if len(self.fetches) < KEPT_FETCHES:
            self.fetches.append(fetch)

    def as_data(self) -> list[Found]:
        return [Found("data", fetch) for fetch in self.fetches]

    def as_evaluation(self) -> list[Found]:
        first = self.fetches[0]
        whole = Fetch(first.wall_ns, first.mono_ns, self.end_ns - first.mono_ns)
        return [Found("evaluation", whole)]


class Passes:
    """Sorts the fetches of one thread. A key stands for one iterator, and is never used again."""

    def __init__(self) -> None:
        self._training: set[Hashable] = set()
        self._undecided: dict[Hashable, _Pass] = {}
        self._latest: Hashable | None = None
        self._reads: Counter[Hashable] = Counter()
        """Fetches of each pass since training was last active."""

    def fetched(self, key: Hashable, fetch: Fetch) -> list[Found]:
        """A fetch with gradients enabled is over; returns what is known to be data time by now."""
        self._latest = key
        self._reads[key] += 1
        if key in self._training:
            return [Found("data", fetch)]
        if key in self._undecided:
            self._undecided[key].add(fetch)
        else:
            self._undecided[key] = _Pass(fetch)
        return []

    def trained(self, *, started: bool) -> list[Found]:
        """A backward pass or an optimizer step begins.

        The latest pass is training's, and so is one that was read no more often since (loaders read
        in turns). Any other pass was an evaluation, and is over.

        Args:
            started: a step is complete already. Before that, nothing counts as an evaluation: it
                may as well be a look at the data, and belongs to start-up.
        """
        if not self._undecided:
            self._reads.clear()
            return []
        found: list[Found] = []
        for key, reading in self._undecided.items():
            if key == self._latest or reading.count <= self._reads[self._latest]:
                self._training.add(key)
                found += reading.as_data()
            elif started:
                found += reading.as_evaluation()
        self._undecided.clear()
        self._reads.clear()
        return found

    def paused(self, *, started: bool) -> list[Found]:
        """A checkpoint is saved or the process ends: passes that trained nothing are over.

        Args:
            started: as for `trained`; False forgets them.
        """
        found = [
            span
            for reading in self._undecided.values()
            if started and reading.count > 1
            for span in reading.as_evaluation()
        ]
        self._undecided.clear()
        return found
