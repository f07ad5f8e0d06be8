"""Steps in columns, and which steps a line covers."""

import pytest
from samples import NS

from goodput.training.measure.readers.logs import batch
from goodput.training.measure.readers.logs.batch import Progress, StepBatch
from goodput.training.measure.readers.logs.story import UNKNOWN, Finish, Launch, Steps
from goodput.training.measure.readers.logs.text import Story


def handed(steps: StepBatch) -> list[Steps]:
    launch = Launch()
    steps.flush(launch)
    return [item for item in launch.items if isinstance(item, Steps)]


def test_many_records_become_columns_block_by_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "BLOCK", 4)
    steps = StepBatch()
    for number in range(10):
        steps.add(number, seconds=1.5, at_ns=number * NS)
    items = handed(steps)
    assert [item.first.size for item in items] == [4, 4, 2]
    assert [n for item in items for n in item.first.tolist()] == list(range(10))
    assert handed(steps) == []


def test_stamps_and_instants_may_be_mixed_and_missing() -> None:
    steps = StepBatch()
    steps.add(1, stamp=b"1971-01-02 00:00:00")
    steps.add(2, at_ns=5)
    steps.add(3)
    (item,) = handed(steps)
    assert item.ended_at_ns.tolist() == [366 * 86_400 * NS, 5, UNKNOWN]
    assert item.duration_ns.tolist() == [-1, -1, -1]


def test_waits_for_data_and_parts() -> None:
    steps = StepBatch()
    steps.add(1, seconds=3, parts=(("generate", 1.0),))
    steps.add(2, seconds=3, data_s=0.5, parts=(("generate", 2.0),))
    (item,) = handed(steps)
    assert item.data_ns is not None
    assert item.data_ns.tolist() == [0, NS // 2]
    assert [(name, lasted.tolist()) for name, lasted in item.parts] == [("generate", [NS, 2 * NS])]


@pytest.mark.parametrize(
    "record",
    [
        {"first": 10**15},
        {"first": 1, "covers": 10**7},
        {"first": 1, "seconds": float("nan")},
        {"first": 1, "seconds": 1e300},
        {"first": 1, "at_ns": 2**63},
    ],
)
def test_numbers_that_cannot_be_are_refused(record: dict[str, float]) -> None:
    steps = StepBatch()
    with pytest.raises(ValueError, match="out of range"):
        steps.add(**record)  # type: ignore[arg-type]
    assert handed(steps) == []


def reach(progress: Progress, story: Story, *lasts: int) -> list[int]:
    steps = StepBatch()
    return [progress.reach(last, story, steps) for last in lasts]


def test_lines_cover_the_steps_since_the_line_before() -> None:
    assert reach(Progress(), Story(0), 10, 20, 25) == [10, 10, 5]
    assert reach(Progress(first_number=0), Story(0), 0, 10, 20) == [1, 10, 10]


def test_copies_cover_nothing_even_when_late() -> None:
    assert reach(Progress(), Story(0), 10, 10, 20, 10, 20, 30, 10) == [10, 0, 10, 0, 0, 10, 0]


def test_a_rollback_is_told_from_a_late_copy_by_its_distance() -> None:
    story = Story(0)
    assert reach(Progress(), story, *range(1, 11), 5, 6) == [1] * 10 + [1, 1]
    assert list(story.notes) == ["steps went back without a start between them"]


def test_a_resumed_launch_begins_where_it_was_said() -> None:
    progress, story = Progress(), Story(0)
    progress.resumed(501)
    assert reach(progress, story, 510, 520) == [10, 10]


def test_the_next_launch_without_a_word_takes_the_stride_of_the_one_before() -> None:
    progress, story = Progress(), Story(0)
    assert reach(progress, story, 10, 20) == [10, 10]
    story.over(Finish("failed"))
    story.starting()
    assert reach(progress, story, 1000, 1010) == [10, 10]


def test_the_only_line_of_a_launch_covers_all_steps_so_far_if_they_are_few() -> None:
    assert reach(Progress(), Story(0), 100) == [100]
    assert reach(Progress(), Story(0), 101) == [1]


def test_the_second_line_shows_what_the_first_covers() -> None:
    story, progress, steps = Story(0), Progress(), StepBatch()
    steps.add(61 - progress.reach(61, story, steps) + 1, covers=61, seconds=122.0, data_s=61.0)
    assert progress.reach(62, story, steps) == 1
    assert progress.resized == 1
    (item,) = (item for item in story.now.items if isinstance(item, Steps))
    assert (item.first.tolist(), item.covers.tolist()) == ([61], [1])
    assert item.duration_ns.tolist() == [2 * NS]
    assert item.data_ns is not None
    assert item.data_ns.tolist() == [NS]


def test_a_jump_that_cannot_be_leaves_the_count_as_it_was() -> None:
    progress, story = Progress(), Story(0)
    assert reach(progress, story, 1) == [1]
    with pytest.raises(ValueError, match="steps on one line"):
        reach(progress, story, 99_999_999)
    assert reach(progress, story, 2) == [1]


def test_a_part_that_no_step_can_hold_is_refused_and_leaves_nothing_behind() -> None:
    steps = StepBatch()
    steps.add(1, seconds=2.0, parts=(("generate", 1.0),))
    with pytest.raises(ValueError, match="out of range"):
        steps.add(2, seconds=2.0, parts=(("generate", 9_999_999_999_999_999_999.0),))
    (item,) = handed(steps)
    assert item.first.tolist() == [1]
