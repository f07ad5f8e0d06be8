"""Which step the next optimizer step is, counted over the whole job: evidence in, number out.

No torch, no clock, no files: steps.py and checkpoints.py feed it. Steps are numbered from 0, so the
number of the next step is the number of steps whose result is in the model.
"""

from typing import Final, NamedTuple

GIVEN: Final = "step_of"
RECORD: Final = "committed checkpoint"
OPTIMIZER: Final = "optimizer state"
COUNTER: Final = "counter in checkpoint"
START: Final = "start"
UNKNOWN: Final = "restart not recognised"

_BELIEF: Final = {GIVEN: 4, RECORD: 3, OPTIMIZER: 2, COUNTER: 1, UNKNOWN: 0, START: 0}
"""Which source is believed over which. A checkpoint that this job recorded beats the optimizer's
own count: the record uses our numbering, and a fused optimizer does not count a skipped step."""


class Evidence(NamedTuple):
    """A reason to believe that the next step is `next_step`."""

    next_step: int
    source: str
    path: str = ""


class Numbering:
    """The number of the step that is running or comes next.

    Methods that take evidence return what should be recorded as resumed now, or None.
    """

    def __init__(self) -> None:
        self.next_step = 0
        self.source = START
        self._completed = False
        self._loaded: Evidence | None = None

    @property
    def last_step(self) -> int:
        """Last step whose result is in the model; -1 = none."""
        return self.next_step - 1

    def loaded(self, evidence: Evidence) -> Evidence | None:
        """A training state was read from storage.

        Before the first step that is the restart. Later only `restored` rolls back, because a
        script may read a checkpoint just to look at it.
        """
        self._loaded = evidence
        return None if self._completed else self._adopt(evidence)

    def restored(self, steps_done: int | None) -> Evidence | None:
        """The main optimizer (before the first step: any optimizer) took over a saved state.

        Args:
            steps_done: steps counted in that state; None when it keeps no count.
        """
        best = self._loaded or Evidence(0, UNKNOWN)
        if steps_done is not None and _BELIEF[best.source] < _BELIEF[OPTIMIZER]:
            best = Evidence(steps_done, OPTIMIZER, best.path)
        return self._adopt(best)

    def check(self, steps_done: int | None) -> Evidence | None:
        """The first step is about to run; `steps_done` as in `restored`, of the main optimizer."""
        return None if steps_done is None else self._adopt(Evidence(steps_done, OPTIMIZER))

    def given(self, next_step: int) -> Evidence | None:
        """The user's own counter says which step is running; going back is a rollback."""
        rollback = self._completed and next_step < self.next_step
        self.next_step, self.source = next_step, GIVEN
        return Evidence(next_step, GIVEN) if rollback else None

    def begun(self) -> Evidence:
        """The first step begins; returns its number and what it rests on."""
        if self.source == START and self._loaded is not None:
            self.source = self._loaded.source
        return Evidence(self.next_step, self.source, self._loaded.path if self._loaded else "")

    def completed(self) -> int:
        """The running step is complete; returns its number."""
        number = self.next_step
        self.next_step = number + 1
        self._completed, self._loaded = True, None
        return number

    def _adopt(self, evidence: Evidence) -> Evidence | None:
        """Move to where the evidence says, unless that is no news or better evidence stands."""
        doubtful = not self._completed and _BELIEF[self.source] > _BELIEF[evidence.source]
        if evidence.source == UNKNOWN or self.source == GIVEN or doubtful:
            return None
        moved = evidence.next_step != self.next_step
        self.next_step, self.source = evidence.next_step, evidence.source
        return evidence if moved else None
