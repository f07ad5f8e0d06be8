"""Two real gloo processes: ranks that only the process group knows, and exposed communication."""

import time
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs torch")
pytestmark = [pytest.mark.torch, pytest.mark.real_processes]

STEPS = 8
LATE_STEP, BARRIER_STEP, REDUCE_STEP = 4, 5, 6
LATE_S = 0.4


def train(rank: int, folder: str, *, instrumented: bool) -> None:
    """One rank: 1 s of training, with rank 1 late once, and rank 0 late at a barrier."""
    torch.set_num_threads(1)
    torch.manual_seed(rank)
    dist = torch.distributed
    if instrumented:
        import goodput

        run = goodput.instrument(job="job", dir=f"{folder}/runs", detail="steps")
    store = f"file://{folder}/store-{instrumented}"
    dist.init_process_group("gloo", init_method=store, rank=rank, world_size=2)
    net = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Linear(64, 64))
    model = torch.nn.parallel.DistributedDataParallel(net)
    optimizer = torch.optim.AdamW(model.parameters())
    for step in range(STEPS):
        loss = model(torch.randn(4, 64)).square().mean()
        if step == LATE_STEP and rank == 1:
            time.sleep(LATE_S)
        loss.backward()
        if step == BARRIER_STEP:
            time.sleep(LATE_S if rank == 0 else 0)
            dist.barrier()
        if step == REDUCE_STEP:
            time.sleep(LATE_S if rank == 0 else 0)
            dist.all_reduce(loss.detach())
        optimizer.step()
        optimizer.zero_grad()
    torch.save([p.detach() for p in net.parameters()], f"{folder}/weights-{instrumented}-{rank}")
    if instrumented:
        run.point("seen by the run that instrument() returned", float(rank))
        run.close()
    Path(folder, f"done-{instrumented}-{rank}").touch()
    dist.destroy_process_group()


def plain_rank(rank: int, folder: str) -> None:
    train(rank, folder, instrumented=False)


def recorded_rank(rank: int, folder: str) -> None:
    train(rank, folder, instrumented=True)


@pytest.fixture
def two_ranks(job: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[int, Any]:
    """The events of both ranks of a job that was run once plainly and once recorded."""
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")
    for name in ("RANK", "WORLD_SIZE", "SLURM_PROCID", "GOODPUT_DETAIL"):
        monkeypatch.delenv(name, raising=False)
    for worker in (plain_rank, recorded_rank):
        try:
            torch.multiprocessing.spawn(worker, args=(str(tmp_path),), nprocs=2)
        except torch.multiprocessing.ProcessExitedException as error:
            # A gloo process aborts now and then as it exits, with or without us (torch 2.13).
            if error.signal_name != "SIGABRT":
                raise
    assert len(list(tmp_path.glob("done-*"))) == 4
    return {recorded[0].rank: recorded for recorded in job.attempts()}


def test_two_ranks(two_ranks: dict[int, Any], tmp_path: Path) -> None:
    # One file for each rank, with the rank that only init_process_group was told.
    assert sorted(two_ranks) == [0, 1]
    for rank, recorded in two_ranks.items():
        assert (recorded[0].rank, recorded[0].world) == (rank, 2)
        kinds = [type(event).__name__ for event in recorded]
        assert kinds.count("Process") == kinds.count("ProcessEnd") == 1
        spans = [event.name for event in recorded if type(event).__name__ == "Span"]
        assert spans == ["init"]
        points = [(e.name, e.value) for e in recorded if type(e).__name__ == "Point"]
        assert ("seen by the run that instrument() returned", float(rank)) in points

    exposed = {
        rank: {event.n: event.comm for event in recorded if type(event).__name__ == "StepEnd"}
        for rank, recorded in two_ranks.items()
    }
    assert list(exposed[0]) == list(range(STEPS))
    assert exposed[0][0] == exposed[1][0] == -1  # the first step is not measured
    assert all(exposed[rank][step] >= 0 for rank in (0, 1) for step in range(1, STEPS))
    # DDP's own wait: rank 0 stands still while rank 1 is late, and not the other way round.
    assert 0.9 * LATE_S < exposed[0][LATE_STEP] / 1e9 < LATE_S + 0.3
    assert exposed[1][LATE_STEP] / 1e9 < LATE_S / 2
    # A blocking collective is communication, a barrier is not.
    assert 0.9 * LATE_S < exposed[1][REDUCE_STEP] / 1e9 < LATE_S + 0.3
    assert exposed[1][BARRIER_STEP] / 1e9 < LATE_S / 2

    for rank in (0, 1):
        plain = torch.load(tmp_path / f"weights-False-{rank}")
        recorded = torch.load(tmp_path / f"weights-True-{rank}")
        assert all(torch.equal(a, b) for a, b in zip(plain, recorded, strict=True))
