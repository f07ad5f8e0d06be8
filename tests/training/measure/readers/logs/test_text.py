"""The scan of text logs: lines whatever their ends, growth, packing, and what is never fatal."""

import gzip
import lzma
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import NS, Told, at, tell, told

from goodput.training.measure.readers.logs import text
from goodput.training.measure.readers.logs.registry import formats_of, looks_like_log, open_log
from goodput.training.measure.readers.logs.story import UNKNOWN, Finish, Happening
from goodput.training.measure.readers.logs.text import Story, TextLog

HEAD = "[after megatron is initialized] datetime: 2025-03-07 10:00:00 \n"


def line(iteration: int, ms: float = 1000.0) -> str:
    return (
        f" iteration {iteration:8d}/    1000 | consumed samples: {iteration} | elapsed time per "
        f"iteration (ms): {ms:.1f} | learning rate: 1.0E-04 | number of skipped iterations:   0 |\n"
    )


LOG = HEAD + "".join(line(i) for i in range(1, 6))


def numbers(result: Told) -> list[int]:
    return [first for first, _, _, _ in result.steps()]


def test_lines_end_in_any_way(tmp_path: Path) -> None:
    for end in ("\r\n", "\r"):
        assert numbers(told(tmp_path, LOG.replace("\n", end) + "\n")) == [1, 2, 3, 4, 5]


def test_colours_are_taken_out_wherever_they_stand(tmp_path: Path) -> None:
    coloured = LOG.replace("iteration ", "\x1b[1;32miteration\x1b[0m ")
    assert numbers(told(tmp_path, coloured)) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("chunk", [1, 7, 64, 1000])
def test_chunks_may_end_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int
) -> None:
    monkeypatch.setattr(text, "CHUNK_BYTES", chunk)
    mixed = LOG.replace("iteration ", "\x1b[32miteration\x1b[0m ").replace("\n", "\r\n")
    assert numbers(told(tmp_path, mixed)) == [1, 2, 3, 4, 5]


def test_a_torn_last_line_is_not_used_and_said(tmp_path: Path) -> None:
    torn = LOG + line(6, 3171.3).partition("71.3")[0]
    assert torn.endswith("(ms): 31")
    result = told(tmp_path, torn)
    assert numbers(result) == [1, 2, 3, 4, 5]
    assert result.noted("last line has no end") == 1


def test_a_growing_file_is_read_on(tmp_path: Path) -> None:
    path = tmp_path / "job.log"
    cut = len(LOG) - 90
    path.write_text(LOG[:cut])
    log = open_log(path, "job.log")
    assert log.poll()
    first = Told([build(0) for build in log.logs()], log.finish())
    assert numbers(first) == [1, 2, 3, 4]
    assert not log.poll()
    with path.open("a") as file:
        file.write(LOG[cut:])
    assert log.poll()
    whole = Told([build(0) for build in log.logs()], log.finish())
    assert whole.steps() == tell(path).steps()
    assert whole.noted("last line") == 0
    assert whole.noted("inferred") == 5  # counted once, however often it is asked for


def test_a_file_that_became_shorter_is_read_as_appended(tmp_path: Path) -> None:
    path = tmp_path / "job.log"
    path.write_text(LOG)
    log = open_log(path, "job.log")
    log.poll()
    path.write_text(HEAD + line(1))
    assert log.poll()
    result = Told([build(0) for build in log.logs()], log.finish())
    assert result.noted("became shorter") == 1
    assert len(result.logs) == 2


@pytest.mark.parametrize("suffix", [".gz", ".xz"])
def test_packed_logs(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"job.log{suffix}"
    pack = gzip.compress if suffix == ".gz" else lzma.compress
    path.write_bytes(pack(LOG.encode()))
    assert looks_like_log(path, b"")
    log = open_log(path, "job")
    assert log.poll()
    assert not log.poll()
    assert numbers(Told([build(0) for build in log.logs()], ())) == [1, 2, 3, 4, 5]


def test_a_packed_log_that_is_cut_short_is_read_up_to_there(tmp_path: Path) -> None:
    path = tmp_path / "job.log.gz"
    packed = gzip.compress((LOG + "".join(line(i) for i in range(6, 3000))).encode())
    path.write_bytes(packed[: -len(packed) // 3])
    result = tell(path)
    assert 5 < len(result.steps()) < 2999
    assert result.noted("cut short") == 1


def test_a_line_without_end_does_not_fill_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text, "CHUNK_BYTES", 1000)
    monkeypatch.setattr(text, "LONGEST_LINE_BYTES", 5000)
    result = told(tmp_path, LOG + "x" * 20_000 + "\n" + line(6))
    assert numbers(result) == [1, 2, 3, 4, 5, 6]
    assert result.noted("skipped") >= 1


def test_bytes_that_are_no_text_are_no_matter(tmp_path: Path) -> None:
    path = tmp_path / "job.log"
    path.write_bytes(b"\xff\xfe\x00" + LOG.encode() + b"\x80 iteration \xff/ |\n")
    assert numbers(tell(path)) == [1, 2, 3, 4, 5]


def test_files_of_other_kinds_are_no_logs(tmp_path: Path) -> None:
    for name, content in {"a.txt": "hello\n", "b.py": "step = 1\n", "c.log": ""}.items():
        (tmp_path / name).write_text(content)
        assert not looks_like_log(tmp_path / name, content.encode())


def test_the_sign_may_stand_at_the_end_of_a_large_file(tmp_path: Path) -> None:
    path = tmp_path / "job.log"
    path.write_text("nothing of interest\n" * 100_000 + LOG)
    assert [one.name for one in formats_of(path, b"")] == ["megatron"]


def test_without_stamps_the_file_s_own_time_is_the_end(tmp_path: Path) -> None:
    result = told(tmp_path, LOG.removeprefix(HEAD), mtime="2025-05-01 00:00:10")
    assert result.steps()[-1] == (5, 1, at("2025-05-01 00:00:09"), 1.0)
    assert result.noted("no line carries a time") == 1


def test_a_launch_begins_when_the_one_before_has_worked_or_is_over() -> None:
    story = Story(0)
    story.starting().mark(1)
    assert story.starting() is story.launches[0]
    story.over(Finish("failed", at_ns=2))
    assert story.starting() is story.launches[1]
    story.starting(once="first rank")
    story.starting(once="first rank")
    assert len(story.launches) == 3


def test_ends_are_joined() -> None:
    story = Story(0)
    story.over(Finish("stopped", "time_limit", at_ns=5))
    story.over(Finish("failed", at_ns=7, exit_code=1))
    assert story.now.finish == Finish("stopped", "time_limit", at_ns=7, exit_code=1)


def test_marks_give_a_launch_its_start() -> None:
    story = Story(0)
    story.now.mark(UNKNOWN)
    assert story.now.empty
    story.now.mark(5 * NS)
    assert story.now.started_at_ns == 5 * NS
    story.now.mark(9 * NS, "later")
    assert story.now.items[-1] == Happening("mark", "later", 9 * NS)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_damaged_logs_never_fail(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    whole = bytearray(LOG.encode())
    for _ in range(data.draw(st.integers(1, 12))):
        where = data.draw(st.integers(0, len(whole) - 1))
        if data.draw(st.booleans()):
            whole[where] = data.draw(st.integers(0, 255))
        else:
            del whole[where : where + data.draw(st.integers(1, 60))]
    path = tmp_path_factory.mktemp("damaged") / "job.log"
    path.write_bytes(bytes(whole))
    os.utime(path, (at("2025-06-01"), at("2025-06-01")))
    log = TextLog(path, "job", formats_of(path, b""))
    log.poll()
    built = [build(0) for build in log.logs()]
    assert len(built) == len(log.clocks())
    log.finish()
