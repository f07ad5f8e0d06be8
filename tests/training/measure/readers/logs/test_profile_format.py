"""What a report makes of a user's own log."""

import threading
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import NS, Told, at, sample, tell
from small_logs import SMALL_LOGS
from small_profiles import ACME, LINES, profile_of, rule, write_log, write_profile

from goodput.core.errors import ConfigError, DataError
from goodput.core.events import AttemptEnd, Committed, Resumed
from goodput.training.measure.readers import Folder, read
from goodput.training.measure.readers.logs import patience
from goodput.training.measure.readers.logs.profile import Profile, load_profile
from goodput.training.measure.readers.logs.profile_trace import trace

STEP = rule("step", r"step (?P<step>\d+) took (?P<seconds>\S+) s")
STAMPED = 'name = "x"\ntimestamp = "iso"\nzone = "UTC"\nstamp = \'^(?P<at>\\S+)\'\n'


NEMO = """
name = "nemo-by-hand"
signs = ["train_step_timing in s: "]
timestamp = "iso"
stamp = '\\[NeMo \\w (?P<at>[\\d-]+ [\\d:]+)'
first_step = 0
"""


def told(profile: Profile, path: Path) -> Told:
    log = read([path], [profile])
    return Told(list(log.processes), log.notes)


def stamped(*lines: tuple[int, str]) -> list[str]:
    return [f"2026-03-01T10:{s // 60:02d}:{s % 60:02d}Z {text}" for s, text in lines]


START = at("2026-03-01 10:00:00")


def test_a_job_of_two_launches(tmp_path: Path) -> None:
    result = told(load_profile(write_profile(tmp_path)), write_log(tmp_path))
    assert len(result.logs) == 2
    assert [log.header.world for log in result.logs] == [16, 16]
    assert result.steps(0) == [
        (1, 1, START + 60, 40),
        (2, 1, START + 100, 2),
        (3, 1, START + 105.5, 2),
        (4, 1, START + 107.5, 2),
    ]
    assert [row[0] for row in result.steps(1)] == [3, 4, 5]
    assert result.spans("checkpoint") == [(START + 102.5, 3)]
    assert result.spans("evaluation", 1) == [(START + 204, 6)]
    (saved,) = result.events(Committed)
    assert isinstance(saved, Committed)
    assert (saved.last_step, saved.path) == (2, "/ckpt/2")
    (resumed,) = result.events(Resumed, 1)
    assert isinstance(resumed, Resumed)
    assert resumed.next_step == 3
    (end,) = result.events(AttemptEnd)
    assert isinstance(end, AttemptEnd)
    assert (end.outcome, end.cause) == ("failed", "gpu_hbm")
    assert end.t == end.fault_t == round((START + 111) * NS)
    ledger = result.ledger
    assert (ledger.steps.kept, ledger.steps.lost, ledger.state) == (5, 2, "completed")
    assert ledger.waterfall.loss("checkpoint") == 16 * 3 * NS
    assert ledger.waterfall.loss("evaluation") == 16 * 6 * NS
    assert not result.noted("without a time zone")


def test_a_log_that_grows_tells_the_same(tmp_path: Path) -> None:
    profile = load_profile(write_profile(tmp_path))
    whole = "".join(line + "\n" for line in LINES)
    once = told(profile, write_log(tmp_path))
    path = tmp_path / "grown.log"
    path.write_text("")
    folder = Folder([path], [profile])
    for end in [*range(0, len(whole), 61), len(whole)]:
        path.write_text(whole[:end])
        folder.poll()
    grown = folder.log()
    assert [log.steps.n.tolist() for log in grown.processes] == [
        log.steps.n.tolist() for log in once.logs
    ]
    assert [len(log.events) for log in grown.processes] == [len(log.events) for log in once.logs]


@settings(max_examples=50)
@given(data=st.data())
def test_damage_is_never_fatal(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("damaged")
    whole = bytearray("".join(line + "\n" for line in LINES).encode())
    wild = st.sampled_from([b"-1", b"9" * 25, b"1e400", b"nan", b",", b"\n", b"\r", b"\xff", b"[3"])
    for _ in range(data.draw(st.integers(1, 10))):
        where = data.draw(st.integers(0, len(whole)))
        end = where + data.draw(st.integers(0, 60))
        whole[where:end] = data.draw(wild)
    path = folder / "run.log"
    path.write_bytes(bytes(whole) + b"\n" + "\n".join(LINES[:3]).encode() + b"\n")
    profile = load_profile(write_profile(folder))
    waterfall = told(profile, path).ledger.waterfall
    assert waterfall.useful >= 0
    trace(profile, path)


def test_profiles_go_before_what_we_know(tmp_path: Path) -> None:
    path = tmp_path / "job.log"
    path.write_text(SMALL_LOGS["megatron"])
    (ours,) = read([path]).processes
    profile = profile_of(tmp_path, rule("step", r"iteration +(?P<step>\d+)/"))
    (theirs,) = read([path], [profile]).processes
    assert ours.header.writer == "megatron reader"
    assert theirs.header.writer == "profile x reader"


def test_a_profile_of_nothing_is_said(tmp_path: Path) -> None:
    profile = profile_of(tmp_path, STEP)
    other = tmp_path / "job.log"
    other.write_text(SMALL_LOGS["megatron"])
    assert told(profile, other).noted("no file is of this profile") == 1
    with pytest.raises(DataError, match="no file is of this profile"):
        read([write_log(tmp_path, ["hello", "world"], name="words.log")], [profile])


def test_a_profile_beside_its_logs_is_no_log(tmp_path: Path) -> None:
    head = 'name = "x"\nsigns = ["took"]\n'
    profile = profile_of(tmp_path, STEP, head=head)
    write_log(tmp_path, ["step 1 took 2 s"])
    log = read([tmp_path], [profile])
    assert [Path(one.path).name for one in log.processes] == ["run.log"]
    assert [note.where for note in log.notes if "ignored" in note.text] == [str(profile.path)]


def test_intervals(tmp_path: Path) -> None:
    lines = ["step 10 took 2 s", "step 20 took 3 s"]
    each = told(profile_of(tmp_path, STEP), write_log(tmp_path, lines))
    assert [(n, c, s) for n, c, _, s in each.steps()] == [(1, 10, 20), (11, 10, 30)]
    line = STEP + 'per = "line"\n'
    together = told(profile_of(tmp_path, line), write_log(tmp_path, lines))
    assert [(n, c, s) for n, c, _, s in together.steps()] == [(1, 10, 2), (11, 10, 3)]


def test_a_line_that_says_how_many_steps_it_covers(tmp_path: Path) -> None:
    given = rule("step", r"step (?P<step>\d+) \((?P<every>\d+)\) (?P<seconds>\S+) s")
    result = told(
        profile_of(tmp_path, given), write_log(tmp_path, ["step 1005 (5) 2 s", "step 1010 (5) 2 s"])
    )
    assert [(n, c, s) for n, c, _, s in result.steps()] == [(1001, 5, 10), (1006, 5, 10)]


def test_units_and_waiting_for_data(tmp_path: Path) -> None:
    profile = profile_of(
        tmp_path,
        rule("step", r"step (?P<step>\d+) took (?P<duration>\S+)(?: data (?P<data_ms>\S+))?"),
        rule("data", r"loader stalled (?P<ms>\S+) ms"),
    )
    lines = ["step 1 took 1:30 data 500", "loader stalled 250 ms", "loader stalled 250 ms"]
    result = told(profile, write_log(tmp_path, [*lines, "step 2 took 0:00:02.5"]))
    assert [s for _, _, _, s in result.steps()] == [90, 2.5]
    assert [s for _, s in result.spans("data")] == [0.5, 0.5]


def test_steps_that_are_counted_from_0_and_saves_that_count_what_is_done(tmp_path: Path) -> None:
    profile = profile_of(
        tmp_path,
        STEP,
        rule("checkpoint_saved", r"saved after (?P<step>\d+) steps", step_is="next"),
        rule("restored", r"going on at (?P<step>\d+)", step_is="next"),
        head='name = "x"\nfirst_step = 0\n',
    )
    lines = ["step 0 took 1 s", "step 1 took 1 s", "saved after 2 steps", "step 2 took 1 s"]
    result = told(profile, write_log(tmp_path, [*lines, "going on at 2", "step 2 took 1 s"]))
    assert len(result.logs) == 2  # no rule of kind launch: a restore after steps is one
    assert [row[:2] for row in result.steps(0)] == [(0, 1), (1, 1), (2, 1)]
    (saved,) = result.events(Committed)
    (resumed,) = result.events(Resumed, 1)
    assert isinstance(saved, Committed)
    assert isinstance(resumed, Resumed)
    assert (saved.last_step, resumed.next_step) == (1, 2)
    assert result.steps(1)[0][:2] == (2, 1)


def test_lines_that_give_the_time_only(tmp_path: Path) -> None:
    profile = profile_of(tmp_path, STEP, rule("time", "INFO"), head=STAMPED)
    lines = ["2026-03-01T10:00:00Z INFO up", "step 1 took 5 s", "2026-03-01T10:00:30Z INFO x"]
    result = told(profile, write_log(tmp_path, [*lines, "step 2 took 5 s"]))
    assert result.steps() == [(1, 1, START, 5), (2, 1, START + 30, 5)]


def test_evaluations_before_and_after_their_line(tmp_path: Path) -> None:
    steps = stamped((10, "step 1 took 5 s"), (16, "evaluation"), (30, "step 2 took 5 s"))
    log = write_log(tmp_path, steps)
    before = told(profile_of(tmp_path, STEP, rule("evaluation", "evaluation"), head=STAMPED), log)
    assert before.spans("evaluation") == [(START + 10, 6)]
    after = rule("evaluation", "evaluation", extent="after")
    result = told(profile_of(tmp_path, STEP, after, head=STAMPED), log)
    assert result.spans("evaluation")[0][1] == 15


def test_saves_with_an_end_of_their_own_and_without_a_step(tmp_path: Path) -> None:
    profile = profile_of(
        tmp_path,
        STEP,
        rule("checkpoint_begin", "save begins"),
        rule("checkpoint_end", r"save took (?P<seconds>\S+)"),
        rule("checkpoint_saved", "save durable"),
        head=STAMPED,
    )
    lines = stamped(
        (10, "step 1 took 5 s"), (11, "save begins"), (15, "save took 4"), (20, "save durable")
    )
    result = told(profile, write_log(tmp_path, lines))
    assert result.spans("checkpoint") == [(START + 11, 4)]
    (saved,) = result.events(Committed)
    assert isinstance(saved, Committed)
    assert saved.last_step == 1
    assert result.noted("saves that name no step") == 1


def test_a_save_of_which_the_end_only_is_told(tmp_path: Path) -> None:
    profile = profile_of(tmp_path, STEP, rule("checkpoint_end", "saved"), head=STAMPED)
    lines = stamped((10, "step 1 took 5 s"), (14, "saved"), (19, "step 2 took 5 s"))
    assert told(profile, write_log(tmp_path, lines)).spans("checkpoint") == [(START + 10, 4)]


def test_ranks_that_all_start_are_one_launch(tmp_path: Path) -> None:
    launch = rule("launch", "hello from rank")
    lines = stamped((0, "hello from rank 0"), (3, "hello from rank 1"), (10, "step 1 took 5 s"))
    again = stamped((200, "hello from rank 0"), (201, "hello from rank 1"))
    result = told(
        profile_of(tmp_path, STEP, launch, head=STAMPED), write_log(tmp_path, [*lines, *again])
    )
    assert [log.started_at_ns / NS - START for log in result.logs] == [0, 200]


def test_ends_and_what_they_say(tmp_path: Path) -> None:
    profile = profile_of(
        tmp_path,
        STEP,
        rule("end", r"rank (?P<rank>\d+) exit code (?P<exit_code>\d+)", outcome="failed"),
        rule("world", r"world (?P<world>\d+)"),
        rule("chips", r"chips (?P<chips>\d+)"),
        head=STAMPED,
    )
    lines = ["world 8", "chips 32", "step 1 took 5 s", "rank 3 exit code 137"]
    result = told(profile, write_log(tmp_path, stamped(*zip([0, 1, 10, 12], lines, strict=True))))
    (end,) = result.events(AttemptEnd)
    assert isinstance(end, AttemptEnd)
    assert (end.outcome, end.rank, end.exit_code) == ("failed", 3, 137)
    assert (result.ledger.world, result.ledger.chips) == (8, 32)


def test_values_that_are_none_are_counted(tmp_path: Path) -> None:
    profile = profile_of(tmp_path, rule("step", r"step (?P<step>\S+) took (?P<seconds>\S+) s"))
    lines = ["step 1 took 1 s", "step x took 1 s", "step 2 took - s", "step 3 took nan s"]
    result = told(profile, write_log(tmp_path, lines))
    assert [row[0] for row in result.steps()] == [1, 2, 3]
    assert result.noted("cannot be parsed") == 3


def test_lines_that_are_too_long_are_not_tried(tmp_path: Path) -> None:
    long = "step 2 took 1 s" + "x" * patience.LONGEST_LINE_BYTES
    result = told(profile_of(tmp_path, STEP), write_log(tmp_path, ["step 1 took 1 s", long]))
    assert [row[0] for row in result.steps()] == [1]
    assert result.noted("longer than 8192 bytes") == 1


def test_a_pattern_that_does_not_end_is_stopped_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience, "LONGEST_MATCH_S", 1)
    hopeless = profile_of(tmp_path, rule("step", r"step (?P<step>\d+) (a+)+b"))
    log = write_log(tmp_path, ["step 1 ab", "step 2 " + "a" * 60])
    began = time.monotonic()
    with pytest.raises(ConfigError, match=r"my\.toml: rule 1 \(step\).*'step 2 aaa"):
        read([log], [hopeless])
    assert time.monotonic() - began < 30


def test_no_timer_beside_the_main_thread(tmp_path: Path) -> None:
    profile = load_profile(write_profile(tmp_path, ACME))
    log, found = write_log(tmp_path), []
    thread = threading.Thread(target=lambda: found.append(told(profile, log)))
    thread.start()
    thread.join(timeout=60)
    assert len(found[0].logs) == 2


def test_a_profile_of_a_format_that_we_read_tells_what_our_reader_tells(tmp_path: Path) -> None:
    log = sample("nemo/resiliency-demo-cell14.log")
    seconds = r".*train_step_timing in s: (?P<seconds>[\d.]+)"
    profile = profile_of(
        tmp_path,
        rule("launch", "Experiments will be logged at"),
        rule("time", r"\[NeMo \w "),
        rule("world", r"Starting with (?P<world>\d+) processes"),
        rule("step", r"global_step: (?P<step>\d+) " + seconds),
        rule("step", r"iteration (?P<step>\d+)/" + seconds),
        rule("checkpoint_end", "Scheduled async checkpoint save"),
        rule("checkpoint_saved", r"save for step (?P<step>\d+) .*finalized", step_is="next"),
        rule("end", "Trainer.fit` stopped"),
        head=NEMO,
    )
    ours, theirs = tell(log).ledger, told(profile, log).ledger
    assert theirs.steps == ours.steps
    assert theirs.waterfall == ours.waterfall
    assert theirs.steps.kept == 20
