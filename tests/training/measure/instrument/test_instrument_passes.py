"""Which fetches are training's: examples, and what holds for any order of fetches and activity."""

from hypothesis import given
from hypothesis import strategies as st

from goodput.training.measure.instrument.passes import Fetch, Found, Passes


class Clock:
    """Fetches of 10 ns, 100 ns apart."""

    def __init__(self) -> None:
        self.now = 0

    def fetch(self) -> Fetch:
        self.now += 100
        return Fetch(1_000_000 + self.now, self.now, 10)


def names(found: list[Found]) -> list[str]:
    return [span.name for span in found]


def test_fetches_before_a_backward_pass_are_data() -> None:
    passes, clock = Passes(), Clock()
    assert passes.fetched("train", clock.fetch()) == []
    assert names(passes.trained(started=True)) == ["data"]
    assert names(passes.fetched("train", clock.fetch())) == ["data"]


def test_a_pass_that_trained_nothing_was_an_evaluation_from_its_first_to_its_last_fetch() -> None:
    passes, clock = Passes(), Clock()
    for _ in range(3):
        passes.fetched("test", clock.fetch())
    passes.fetched("train", clock.fetch())
    evaluation, data = passes.trained(started=True)
    assert evaluation == Found("evaluation", Fetch(1_000_100, 100, 210))
    assert data.name == "data"


def test_before_the_first_step_nothing_is_an_evaluation() -> None:
    passes, clock = Passes(), Clock()
    for _ in range(3):
        passes.fetched("look", clock.fetch())
    passes.fetched("train", clock.fetch())
    assert names(passes.trained(started=False)) == ["data"]


def test_a_pause_ends_a_pass_that_trained_nothing() -> None:
    passes, clock = Passes(), Clock()
    for _ in range(2):
        passes.fetched("test", clock.fetch())
    assert names(passes.paused(started=True)) == ["evaluation"]
    assert passes.paused(started=True) == []


def test_a_loader_that_is_used_for_both_is_judged_each_time() -> None:
    passes, clock = Passes(), Clock()
    passes.fetched("train", clock.fetch())
    passes.trained(started=True)
    for _ in range(2):  # the same persistent iterator evaluates twice
        for _ in range(3):
            passes.fetched("test", clock.fetch())
        passes.fetched("train", clock.fetch())
        assert names(passes.trained(started=True)) == ["evaluation"]


moves = st.lists(st.one_of(st.sampled_from("abc"), st.sampled_from(["trained", "paused"])))


@given(moves)
def test_every_fetch_is_told_at_most_once_and_in_its_own_time(story: list[str]) -> None:
    passes, clock = Passes(), Clock()
    fetches: list[Fetch] = []
    told: list[Found] = []
    for move in story:
        if move == "trained":
            told += passes.trained(started=True)
        elif move == "paused":
            told += passes.paused(started=True)
        else:
            fetches.append(clock.fetch())
            told += passes.fetched(move, fetches[-1])
    data = [span.fetch for span in told if span.name == "data"]
    assert len(data) == len(set(data))
    assert set(data) <= set(fetches)
    starts, ends = {f.mono_ns for f in fetches}, {f.end_ns for f in fetches}
    for span in told:
        assert span.fetch.mono_ns in starts
        assert span.fetch.end_ns in ends


@given(st.integers(1, 20))
def test_a_loop_of_training_alone_has_no_evaluation_and_all_its_waits(steps: int) -> None:
    passes, clock = Passes(), Clock()
    told: list[Found] = []
    for _ in range(steps):
        told += passes.fetched("train", clock.fetch())
        told += passes.trained(started=True)
    assert names(told) == ["data"] * steps
