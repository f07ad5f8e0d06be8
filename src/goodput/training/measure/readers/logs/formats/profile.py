"""A log that the user described in a profile: what its rules match becomes the story."""

from typing import TYPE_CHECKING, Final

from goodput.core.causes import classify
from goodput.training.measure.readers.logs.batch import Progress, StepBatch
from goodput.training.measure.readers.logs.patience import LONGEST_LINE_BYTES
from goodput.training.measure.readers.logs.profile import Compiled, Hit, Profile
from goodput.training.measure.readers.logs.story import NS, UNKNOWN, Finish, Happening
from goodput.training.measure.readers.logs.text import Story

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

LONGEST_START_NS: Final = 60 * NS
"""Ranks of one launch start within this of each other (assumed)."""
TOO_LONG: Final = f"lines longer than {LONGEST_LINE_BYTES} bytes: the profile's rules skip them"
UNPARSED: Final = "values that a rule matched but that cannot be parsed; left out"


class ProfileFormat:
    """One file of a user's own log.

    Args:
        profile: what its lines mean.
    """

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self.name = f"profile {profile.name}"
        self.signs = profile.signs
        self.needles = tuple(dict.fromkeys(one.needle for one in profile.rules))
        self._steps = StepBatch()
        self._progress = Progress(profile.file.first_step)
        self._data_s = 0.0
        self._started_ns = UNKNOWN
        self._marked_ns = UNKNOWN
        self._saving = False
        self._begins = any(one.rule.kind == "checkpoint_begin" for one in profile.rules)
        self._closes = any(one.rule.kind == "checkpoint_end" for one in profile.rules)
        self._zoned = bool(profile.file.zone) or not (profile.stamps and profile.stamps.zoneless)

        self._takers: Mapping[str, Callable[[Hit, bytes, Story], None]] = {
            "step": self._step,
            "data": self._data,
            "evaluation": self._evaluation,
            "checkpoint_begin": self._checkpoint_begin,
            "checkpoint_end": self._checkpoint_end,
            "checkpoint_saved": self._checkpoint_saved,
            "restored": self._restored,
            "launch": self._launch,
            "end": self._end,
            "fault": self._fault,
            "world": self._world,
            "chips": self._chips,
            "time": self._time,
        }

    def line(self, line: bytes, story: Story) -> None:
        """Take one line of interest: every rule that matches it counts, one `step` rule only."""
        if len(line) > LONGEST_LINE_BYTES:
            story.note(TOO_LONG)
            return
        if self._zoned:
            story.zoneless = False
        stepped = False
        for one in self._profile.rules:
            kind = one.rule.kind
            if one.needle not in line or (stepped and kind == "step"):
                continue
            found = self._profile.search(one, line)
            if found is not None:
                self._take(one, self._profile.hit(one, found, line, story.clock), line, story)
                stepped = stepped or kind == "step"

    def flush(self, story: Story) -> None:
        """Hand over the steps that are held back."""
        self._steps.flush(story.now)

    def _take(self, one: Compiled, hit: Hit, line: bytes, story: Story) -> None:
        if hit.problems:
            story.note(UNPARSED, len(hit.problems))
        if one.rule.kind in {"step", "restored"} and "step" not in hit.values:
            return
        self._takers[one.rule.kind](hit, line, story)

    def _step(self, hit: Hit, _line: bytes, story: Story) -> None:
        rule, values = hit.which.rule, hit.values
        last = _last_step(hit)
        if (
            not self._profile.restarts
            and story.now.finish is not None
            and last < self._progress.done
        ):
            story.starting()
        covers = self._progress.reach(last, story, self._steps)
        if not covers:
            return
        every = int(values.get("every", 0))
        if every > 0:
            covers = every
        seconds = _seconds(hit)
        if seconds >= 0 and rule.per == "step":
            seconds *= covers
        data = float(values.get("data_seconds", 0.0))
        if rule.per == "step":
            data *= covers
        self._steps.add(
            last - covers + 1,
            covers=covers,
            seconds=seconds,
            at_ns=hit.at_ns,
            data_s=data + self._data_s,
        )
        self._data_s = 0.0

    def _data(self, hit: Hit, _line: bytes, _story: Story) -> None:
        """Part of the step that the next step line reports."""
        self._data_s += max(_seconds(hit), 0.0)

    def _evaluation(self, hit: Hit, _line: bytes, story: Story) -> None:
        story.settle()
        lasted = _lasted_ns(hit)
        if lasted >= 0:
            story.now.add(Happening("span", "evaluation", hit.at_ns, duration_ns=lasted))
        elif hit.which.rule.extent == "after":
            story.now.mark(hit.at_ns)
            story.now.add(Happening("gap", "evaluation"))
        else:
            story.now.add(Happening("since", "evaluation", hit.at_ns))

    def _checkpoint_begin(self, hit: Hit, _line: bytes, story: Story) -> None:
        story.settle()
        if not self._saving:
            story.now.add(Happening("begin", "checkpoint", hit.at_ns))
        self._saving = True

    def _checkpoint_end(self, hit: Hit, _line: bytes, story: Story) -> None:
        story.settle()
        lasted = _lasted_ns(hit)
        if self._saving:
            story.now.add(Happening("end", "checkpoint", hit.at_ns, duration_ns=lasted))
        elif lasted >= 0:
            story.now.add(Happening("span", "checkpoint", hit.at_ns, duration_ns=lasted))
        elif not self._begins:
            story.now.add(Happening("since", "checkpoint", hit.at_ns))
        self._saving = False

    def _checkpoint_saved(self, hit: Hit, line: bytes, story: Story) -> None:
        """Ends a save that is open where no rule of the profile says when it does."""
        story.settle()
        if not self._closes and (self._saving or _seconds(hit) >= 0):
            self._checkpoint_end(hit, line, story)
        elif _seconds(hit) >= 0:
            story.now.add(Happening("span", "checkpoint", hit.at_ns, duration_ns=_lasted_ns(hit)))
        if "step" in hit.values:
            step = _last_step(hit)
        else:
            step = self._progress.done
            story.note("saves that name no step: the last step logged before is taken")
        path = str(hit.values.get("path", ""))
        story.now.add(Happening("saved", "", hit.at_ns, step=step, path=path))

    def _restored(self, hit: Hit, _line: bytes, story: Story) -> None:
        if not self._profile.restarts and story.now.worked:
            story.starting()
        story.settle()
        following = _last_step(hit) + 1
        lasted = _lasted_ns(hit)
        if lasted >= 0:
            story.now.add(Happening("span", "restore", hit.at_ns, duration_ns=lasted))
        path = str(hit.values.get("path", ""))
        story.now.add(Happening("resumed", "", hit.at_ns, step=following, path=path))
        self._progress.resumed(following)

    def _launch(self, hit: Hit, _line: bytes, story: Story) -> None:
        """Every rank may say so, within seconds; a second time later is a second launch."""
        at = hit.at_ns
        known = UNKNOWN not in {at, self._started_ns}
        again = not known or abs(at - self._started_ns) > LONGEST_START_NS
        late_copy = known and not again
        launch = story.now if late_copy else story.starting(once="launch" if known else "")
        if not late_copy:
            self._saving, self._data_s = False, 0.0
            launch.mark(at, "start")
        launch.world = int(hit.values.get("world", launch.world))
        launch.chips = int(hit.values.get("chips", launch.chips))
        self._started_ns = at if at != UNKNOWN else self._started_ns

    def _end(self, hit: Hit, line: bytes, story: Story) -> None:
        self._finish(hit, line, story, outcome=hit.which.rule.outcome)

    def _fault(self, hit: Hit, line: bytes, story: Story) -> None:
        self._finish(hit, line, story, outcome="failed")

    def _finish(self, hit: Hit, line: bytes, story: Story, *, outcome: str) -> None:
        story.settle()
        failed = outcome in {"failed", "preempted"}
        evidence = line.strip().decode(errors="replace")
        cause = hit.which.rule.cause
        if failed and not cause:
            verdict = classify(text=str(hit.values.get("cause", evidence)))
            cause = verdict.cause if verdict.confidence > 0 else ""
        story.over(
            Finish(
                outcome,
                cause,
                evidence,
                hit.at_ns,
                fault_at_ns=hit.at_ns if failed else UNKNOWN,
                exit_code=int(hit.values.get("exit_code", -1)),
                signal=int(hit.values.get("signal", 0)),
                rank=int(hit.values.get("rank", -1)),
            )
        )

    def _world(self, hit: Hit, _line: bytes, story: Story) -> None:
        story.now.world = int(hit.values.get("world", 0))
        story.now.mark(hit.at_ns)

    def _chips(self, hit: Hit, _line: bytes, story: Story) -> None:
        story.now.chips = int(hit.values.get("chips", 0))
        story.now.mark(hit.at_ns)

    def _time(self, hit: Hit, _line: bytes, story: Story) -> None:
        """One instant a second is enough."""
        at = hit.at_ns
        if at != UNKNOWN and (self._marked_ns == UNKNOWN or abs(at - self._marked_ns) >= NS):
            self._marked_ns = at
            story.settle()
            story.now.mark(at)


def _last_step(hit: Hit) -> int:
    """The last step that is done, whatever the line counts."""
    step = int(hit.values["step"])
    return step - 1 if hit.which.rule.step_is == "next" else step


def _seconds(hit: Hit) -> float:
    """The line's time in seconds; -1 = it gives none."""
    return float(hit.values.get("seconds", -1.0))


def _lasted_ns(hit: Hit) -> int:
    seconds = _seconds(hit)
    return round(seconds * NS) if seconds >= 0 else -1


__all__ = ["ProfileFormat"]
