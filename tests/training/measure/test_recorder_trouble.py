"""Full disks, vanished folders, closed descriptors: training must not notice."""

import itertools
import os
import resource
import shutil
import stat
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from recordings import events_in, events_of, files, kinds, spawn

import goodput
from goodput.core import events
from goodput.training.measure.event_writer import EventWriter
from goodput.training.measure.run import Run


class Clock:
    """A monotonic clock that the test moves."""

    def __init__(self) -> None:
        self.now_ns = 1

    def __call__(self) -> int:
        return self.now_ns


def writer_at(path: Path, clock: Callable[[], int] = time.monotonic_ns) -> EventWriter:
    return EventWriter(
        path,
        header=lambda: b"header\n",
        dropped=lambda count, reason: f"dropped {count} {reason}\n".encode(),
        clock=clock,
    )


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    run = goodput.start("job", dir=tmp_path, rank=0, world=1)
    yield run
    run.close()


def test_a_full_disk_costs_the_records_it_has_no_room_for_and_says_how_many(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    clock = Clock()
    full = writer_at(Path("/dev/full"), clock)
    for i in range(10):
        full.append(b"record %d\n" % i, clock.now_ns)
    assert full.dropped == 10
    full.close(b"last\n")
    assert full.dropped == 11
    said = capfd.readouterr().err.splitlines()
    assert len(said) == 2, said
    assert "/dev/full" in said[0]
    assert "No space left on device" in said[0]
    assert "11 record(s)" in said[1]


@pytest.mark.real_processes
def test_a_line_that_the_disk_cut_is_ended_and_the_next_records_are_whole(tmp_path: Path) -> None:
    child = spawn(
        """
        import resource
        size = os.path.getsize(run.path)
        hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        # Python ignores SIGXFSZ: a write is cut at the limit, the next one fails.
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 200, hard))
        for n in range(20):
            run.step(n)
        print(run.dropped, flush=True)
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        time.sleep(0.15)
        for n in range(100, 110):
            run.step(n)
        """,
        tmp_path,
    )
    dropped = int(child.line())
    err = child.end()
    (path,) = files(tmp_path)
    lines = path.read_bytes().split(b"\n")
    whole = [line for line in lines if line.startswith(b"{") and line.endswith(b"}")]
    torn = [line for line in lines if line and line not in whole]
    assert len(torn) == 1, "only the line that met the limit is lost in the file"
    path.write_bytes(b"\n".join(whole) + b"\n")
    written = events_in(path)
    steps = [e.n for e in written if isinstance(e, events.Step)]
    early = [n for n in steps if n < 100]
    assert early == list(range(len(early)))
    assert 20 - len(early) == dropped
    assert [n for n in steps if n >= 100] == list(range(100, 110))
    assert sum(e.count for e in written if isinstance(e, events.Dropped)) == dropped
    assert kinds(written)[len(early)] == "dropped", "before the records that follow the gap"
    assert len(err.splitlines()) == 2


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a small file system")
def test_a_small_file_system_that_fills_up_and_is_cleared(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", disk], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"cannot mount: {mounted.stderr.decode()}")
    try:
        run = goodput.start("job", dir=disk, rank=0, world=1)
        ballast = disk / "ballast"
        ballast.write_bytes(bytes(40 << 10))
        for n in range(1000):
            run.step(n)
        assert 0 < run.dropped < 1000
        before = run.dropped
        ballast.unlink()
        time.sleep(0.3)
        for n in range(1000, 1010):
            run.step(n)
        run.close()
        assert run.dropped == before
        text = run.path.read_bytes()
        assert all(b'"n":%d,' % n in text for n in range(1000, 1010))
        assert b'{"k":"dropped","count":%d,"reason":"' % before in text
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


@pytest.mark.parametrize("obstacle", ["file in the way", "dangling link", "no folder at all"])
def test_a_folder_that_cannot_be_made_costs_all_records_until_it_can(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], obstacle: str
) -> None:
    job = tmp_path / "runs"
    if obstacle == "file in the way":
        job.write_text("")
    elif obstacle == "dangling link":
        job.symlink_to(tmp_path / "nowhere" / "deeper" / "still")
    else:
        job = Path("/proc/no-such-folder")
    run = goodput.start("job", dir=job, rank=0, world=1)
    began = time.monotonic()
    for n in range(1000):
        run.step(n)
    assert time.monotonic() - began < 2
    assert run.dropped == 1000
    assert len(capfd.readouterr().err.splitlines()) == 1
    if obstacle == "file in the way":
        job.unlink()
        time.sleep(0.3)
        run.step(1000)
        run.close()
        written = events_of(job)
        assert kinds(written) == ["dropped", "step", "process_end"]
        assert isinstance(written[1], events.Dropped)
        assert written[1].count == 1000
    else:
        run.close()
        assert run.dropped == 1001
    assert str(job) in capfd.readouterr().err


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder_costs_all_records(tmp_path: Path) -> None:
    tmp_path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    try:
        run = goodput.start("job", dir=tmp_path, rank=0, world=1)
        run.step(0)
        assert run.dropped == 1
        run.close()
    finally:
        tmp_path.chmod(stat.S_IRWXU)


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a file system")
def test_a_file_system_that_becomes_read_only_is_survived(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m,ro", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("cannot mount")
    try:
        run = goodput.start("job", dir=disk, rank=0, world=1)
        run.step(0)
        assert run.dropped == 1
        subprocess.run(["mount", "-o", "remount,rw", disk], check=True)
        time.sleep(0.3)
        run.step(1)
        run.close()
        assert kinds(events_of(disk)) == ["dropped", "step", "process_end"]
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


def test_a_deleted_folder_is_made_again_and_what_went_into_it_is_counted(tmp_path: Path) -> None:
    clock = Clock()
    writer = writer_at(tmp_path / "job" / "events-x.jsonl", clock)
    writer.append(b"before\n", clock.now_ns)
    clock.now_ns += 2_000_000_000
    writer.append(b"looked at\n", clock.now_ns)
    shutil.rmtree(tmp_path / "job")
    for i in range(5):
        writer.append(b"into the void %d\n" % i, clock.now_ns)
    clock.now_ns += 2_000_000_000
    writer.append(b"and this one finds out\n", clock.now_ns)
    writer.append(b"after\n", clock.now_ns)
    writer.close(b"last\n")
    text = (tmp_path / "job" / "events-x.jsonl").read_text()
    assert text == "header\ndropped 6 the file was deleted\nafter\nlast\n"
    assert writer.dropped == 6


def test_a_file_deleted_just_before_the_end_is_found_out_at_the_end(run: Run) -> None:
    run.step(0)
    shutil.rmtree(run.path.parent)
    run.step(1)
    run.close()
    written = events_in(run.path)
    assert kinds(written) == ["dropped", "process_end"]
    assert run.dropped == 2


def test_a_closed_descriptor_is_opened_again_and_no_other_file_is_touched(
    run: Run, tmp_path: Path
) -> None:
    run.step(0)
    os.close(run._file.fd)
    strangers = [os.open(tmp_path / f"stranger{i}", os.O_WRONLY | os.O_CREAT) for i in range(5)]
    run.step(1)  # finds out
    time.sleep(0.15)
    run.step(2)
    run.close()
    for descriptor in strangers:
        assert os.fstat(descriptor).st_size == 0
        os.close(descriptor)
    written = events_in(run.path)
    assert kinds(written) == ["step", "dropped", "step", "process_end"]
    assert sum(e.count for e in written if isinstance(e, events.Dropped)) == 1


def test_retries_are_rare_and_become_rarer() -> None:
    clock = Clock()
    tried: list[int] = []

    def header() -> bytes:
        tried.append(clock.now_ns)
        return b"header\n"

    writer = EventWriter(
        Path("/dev/full"), header=header, dropped=lambda count, _: b"%d" % count, clock=clock
    )
    for _ in range(60_000):
        clock.now_ns += 1_000_000  # 1 ms
        writer.append(b"record\n", clock.now_ns)
    gaps_s = [(b - a) / 1e9 for a, b in itertools.pairwise(tried)]
    assert gaps_s[0] == pytest.approx(0.1, abs=0.01)
    assert max(gaps_s) == pytest.approx(5, abs=0.01)
    assert len(tried) < 20, "in a minute"
    assert writer.dropped == 60_000
    writer.disable()


def test_a_header_that_the_disk_cut_is_written_anew(tmp_path: Path) -> None:
    child = spawn(
        """
        import resource
        hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
        second = goodput.start("second")
        second.step(0)
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        time.sleep(0.3)
        second.step(1)
        """,
        tmp_path,
    )
    child.end()
    written = events_of(tmp_path / "second")
    assert kinds(written) == ["dropped", "step", "process_end"]


def test_a_record_from_a_signal_handler_in_the_slow_path_is_counted(tmp_path: Path) -> None:
    clock = Clock()
    inside: list[EventWriter] = []

    def header() -> bytes:
        for writer in inside:  # as a signal handler would, in the middle of a retry
            writer.append(b"nested\n", clock.now_ns)
        return b"header\n"

    folder = tmp_path / "file in the way"
    folder.write_text("")
    writer = EventWriter(
        folder / "events-x.jsonl",
        header=header,
        dropped=lambda count, _: b"dropped %d\n" % count,
        clock=clock,
    )
    writer.append(b"lost\n", clock.now_ns)
    inside.append(writer)
    folder.unlink()
    clock.now_ns += 10_000_000_000
    writer.append(b"kept\n", clock.now_ns)
    writer.close()
    assert (folder / "events-x.jsonl").read_text() == "header\ndropped 2\nkept\n"
    assert writer.dropped == 2


def test_a_low_limit_on_open_files_is_survived(tmp_path: Path) -> None:
    child = spawn(
        f"""
        import resource
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, ({_LOW_LIMIT}, hard))
        goodput.start("low").step(0)
        """,
        tmp_path,
    )
    assert child.end() == ""
    assert kinds(events_of(tmp_path / "low")) == ["step", "process_end"]


_LOW_LIMIT = 64
assert resource.getrlimit(resource.RLIMIT_NOFILE)[1] > _LOW_LIMIT
