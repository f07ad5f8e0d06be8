"""torchrun's agents and NVRx's ft_launcher beside a trainer, and alone."""

from pathlib import Path

import pytest
from samples import NS, Told, at, told

from goodput.core.events import AttemptEnd

AGENT = "torch/distributed/elastic/agent/server"


def agent(clock: str, words: str, level: str = "I") -> str:
    return f"{level}0307 {clock}.000000 4242 {AGENT}/api.py:525] {words}"


def line(iteration: int, clock: str) -> str:
    return (
        f" [2025-03-07 {clock}] iteration {iteration:8d}/ 1000 | elapsed time per iteration (ms): "
        "1000.0 | learning rate: 1.0E-04 |"
    )


FIRST = [
    agent("10:00:00", "[default] starting workers for entrypoint: python"),
    agent("10:00:00", "[default] Rendezvous'ing worker group"),
    agent("10:00:02", "[default] Rendezvous complete for workers. Result:"),
    agent("10:00:02", "  restart_count=0"),
    agent("10:00:02", "  global_world_sizes=[16, 16, 16, 16, 16, 16, 16, 16]"),
    agent("10:00:02", "[default] Starting worker group"),
    line(10, "10:01:00"),
]
CRASH = [
    agent("10:01:30", "failed (exitcode: -9) local_rank: 3 (pid: 99) of binary: python", "E"),
    agent(
        "10:01:30", "[default] Worker group FAILED. 2/3 attempts left; will restart worker group"
    ),
    agent("10:01:31", "[default] Stopping worker group"),
    agent("10:01:35", "[default] Rendezvous'ing worker group"),
    agent("10:01:50", "[default] Rendezvous complete for workers. Result:"),
    agent("10:01:50", "[default] Starting worker group"),
]


def end(result: Told, launch: int = 0) -> AttemptEnd:
    (found,) = result.events(AttemptEnd, launch)
    assert isinstance(found, AttemptEnd)
    return found


def ns(clock: str) -> int:
    return round(at(f"2025-03-07 {clock}")) * NS


def test_a_restart_is_two_launches(tmp_path: Path) -> None:
    result = told(tmp_path, [*FIRST, *CRASH, line(20, "10:03:00")])
    assert len(result.logs) == 2
    assert result.logs[0].started_at_ns == ns("10:00:00")
    assert result.logs[0].header.world == 16
    assert result.logs[1].started_at_ns == ns("10:01:50")
    over = end(result)
    assert (over.outcome, over.signal, over.exit_code) == ("failed", 9, -1)
    assert over.noticed_t == ns("10:01:30")
    assert over.t == ns("10:01:31")
    assert "exitcode: -9" in over.evidence


def test_the_ledger_sees_one_incident_and_its_recovery(tmp_path: Path) -> None:
    ledger = told(tmp_path, [*FIRST, *CRASH, line(20, "10:03:00")]).ledger
    (incident,) = ledger.incidents
    assert incident.noticed_at_ns == ns("10:01:30")
    assert incident.recovery_ns == 20 * NS
    assert ledger.chips == 16


def test_agents_of_several_nodes_start_one_launch(tmp_path: Path) -> None:
    result = told(tmp_path, [*FIRST[:6], *FIRST[:6], FIRST[6], *CRASH[:4], *CRASH, FIRST[6]])
    assert len(result.logs) == 2


def test_root_cause_names_the_rank(tmp_path: Path) -> None:
    report = [
        "Root Cause (first observed failure):",
        "[0]:",
        "  time      : 2025-03-07_10:01:30",
        "  rank      : 11 (local_rank: 3)",
        "  exitcode  : 1 (pid: 99)",
    ]
    failed = agent("10:01:30", "failed (exitcode: 1) local_rank: 3 (pid: 99) of binary: python")
    over = end(told(tmp_path, [*FIRST, failed, *report]))
    assert (over.rank, over.exit_code, over.signal) == (11, 1, 0)


def test_a_clean_end(tmp_path: Path) -> None:
    words = "[default] worker group successfully finished. Waiting 300 seconds for other agents"
    over = end(told(tmp_path, [*FIRST, agent("10:02:00", words)]))
    assert (over.outcome, over.t) == ("completed", ns("10:02:00"))


def test_nodes_that_join_end_a_launch_on_purpose(tmp_path: Path) -> None:
    words = "[default] Detected 1 new nodes from group_rank=0; will restart worker group"
    over = end(told(tmp_path, [*FIRST, agent("10:02:00", words), *CRASH[3:]]))
    assert (over.outcome, over.cause) == ("stopped", "scaled")


@pytest.mark.parametrize(("name", "number"), [("15", 15), ("Signals.SIGTERM", 15), ("SIGINT", 2)])
def test_a_signal_to_the_agent(tmp_path: Path, name: str, number: int) -> None:
    words = f"Received {name} death signal, shutting down workers"
    over = end(told(tmp_path, [*FIRST, agent("10:02:00", words, "W")]))
    assert (over.outcome, over.cause, over.signal) == ("stopped", "killed", number)


def test_the_older_form_of_stamps(tmp_path: Path) -> None:
    old = [
        "[INFO] 2025-03-07 10:00:00,500 api: [default] Starting worker group",
        line(10, "10:01:00"),
        "[INFO] 2025-03-07 10:01:30,220 api: [default] Worker group FAILED. 3/3 attempts left",
        "[INFO] 2025-03-07 10:01:40,220 api: [default] Rendezvous'ing worker group",
        "[INFO] 2025-03-07 10:01:45,220 api: [default] Starting worker group",
        line(20, "10:03:00"),
    ]
    result = told(tmp_path, old)
    assert len(result.logs) == 2
    assert end(result).outcome == "failed"


def test_an_agent_s_log_alone_tells_of_starts_and_ends(tmp_path: Path) -> None:
    words = "[default] worker group successfully finished."
    result = told(tmp_path, [*FIRST[:6], *CRASH, agent("10:09:00", words)])
    assert [end(result, i).outcome for i in (0, 1)] == ["failed", "completed"]


def profile(cycle: int, event: str, clock: str, node: str = "n1_42_0") -> str:
    return (
        f"[2025-03-07 10:00:00,000] [INFO] [ft_launcher@n1]   - Cycle: {cycle} Event: {event} "
        f"Node: {node} Rank: 0 Time: 2025-03-07 {clock}.250 UTC"
    )


def test_the_cycle_profile_dates_a_restart(tmp_path: Path) -> None:
    result = told(
        tmp_path,
        [
            profile(0, "rendezvous_started", "10:00:00"),
            profile(0, "rendezvous_completed", "10:00:05"),
            profile(0, "worker_start_started", "10:00:06"),
            line(10, "10:01:00"),
            profile(1, "failure_detected", "10:01:30"),
            profile(1, "failure_detected", "10:01:31", "n2_17_0"),
            profile(1, "worker_terminated", "10:01:40"),
            profile(1, "rendezvous_started", "10:01:42"),
            profile(1, "health_check_completed", "10:01:44"),
            profile(1, "rendezvous_completed", "10:01:50"),
            profile(1, "worker_start_started", "10:01:55"),
            line(20, "10:03:00"),
        ],
    )
    assert len(result.logs) == 2
    over = end(result)
    assert over.noticed_t == ns("10:01:30") + NS // 4
    assert over.t == ns("10:01:40") + NS // 4
    assert result.logs[1].started_at_ns == ns("10:01:55") + NS // 4


def test_ft_launcher_s_own_prefix(tmp_path: Path) -> None:
    prefix = "[2025-03-07 10:01:30,000] [ERROR] [ft_launcher@n1] "
    failed = prefix + "failed (exitcode: 1) local_rank: 0 (pid: 7) of binary: python"
    assert end(told(tmp_path, [*FIRST, failed])).exit_code == 1
