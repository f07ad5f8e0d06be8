"""Random event files: every kind of event, several attempts and ranks, clocks that step, noise.

What they say need not make sense; what matters is that all of it is carried along.
"""

import json
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from goodput.core.events import SCHEMA

ORIGIN_NS = 1_790_000_000_000_000_000
MONOTONIC_NS = 1_000_000_000_000
SECOND_NS = 1_000_000_000

_names = st.sampled_from(
    ["init", "compile", "data", "evaluation", "checkpoint", "communication", "mine", 'ä"\n']
)
_step = st.builds(
    lambda n, more: {"k": "step", "n": n, **more},
    st.integers(0, 40),
    st.fixed_dictionaries(
        {},
        optional={
            "d": st.integers(-1, 3 * SECOND_NS),
            "c": st.integers(0, 3),
            "shape": st.sampled_from(["", "8x512", "16x512"]),
            "comm": st.integers(0, SECOND_NS),
        },
    ),
)
_bodies: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.builds(lambda n: {"k": "step", "n": n}, st.integers(0, 40)),
    _step,
    st.builds(
        lambda n, comm: {"k": "step_end", "n": n, "comm": comm},
        st.integers(0, 40),
        st.integers(-1, SECOND_NS),
    ),
    st.builds(
        lambda name, d, ident, aside: {
            "k": "span", "name": name, "d": d, "id": ident, "background": aside,
        },
        _names,
        st.integers(0, 20 * SECOND_NS),
        st.integers(0, 3),
        st.booleans(),
    ),
    st.builds(
        lambda name, ident, label: {"k": "begin", "name": name, "id": ident, "counts_as": label},
        _names,
        st.integers(1, 3),
        st.sampled_from(["", "data", "evaluation"]),
    ),
    st.builds(
        lambda first, steps, d, work: {
            "k": "window", "first": first, "last": first + steps - 1, "steps": steps, "d": d,
            "work": work,
        },
        st.integers(0, 40),
        st.integers(1, 10),
        st.integers(0, 20 * SECOND_NS),
        st.integers(-1, SECOND_NS),
    ),
    st.builds(lambda n: {"k": "committed", "last_step": n, "path": "ckpt/é"}, st.integers(-1, 40)),
    st.builds(lambda n: {"k": "resumed", "next_step": n}, st.integers(0, 40)),
    st.builds(lambda n: {"k": "submitted", "chips": n}, st.integers(1, 8)),
    st.builds(lambda n: {"k": "allocated", "chips": n, "requested": 8}, st.integers(0, 8)),
    st.builds(lambda key: {"k": "attempt_start", "attempt": key}, st.sampled_from(["a", "b"])),
    st.builds(
        lambda key, code: {"k": "attempt_end", "attempt": key, "exit_code": code},
        st.sampled_from(["", "a", "b"]),
        st.integers(-1, 255),
    ),
    st.builds(lambda rank: {"k": "noticed", "rank": rank}, st.integers(-1, 3)),
    st.builds(lambda x: {"k": "work", "flops_per_step": x}, st.floats(0, 1e20)),
    st.builds(
        lambda x: {"k": "point", "name": "loss", "value": x},
        st.floats(allow_nan=False, allow_infinity=False),
    ),
    st.builds(lambda n: {"k": "dropped", "count": n, "reason": "disk full"}, st.integers(0, 9)),
    st.builds(lambda s: {"k": "process_end", "signal": s}, st.integers(0, 15)),
    st.builds(lambda how: {"k": "ended", "outcome": how}, st.sampled_from(["completed", "failed"])),
)  # fmt: skip
_noise = st.sampled_from(
    [
        b"",
        b"not json",
        b'{"k":"hologram","t":1}',
        b'{"k":"step","n":"four","t":1}',
        b'{"k":"step","n":4,"t":1790000000000000000,"colour":"blue"}',
        b"\xff\xfe\x00garbage",
    ]
)


@st.composite
def event_file(draw: st.DrawFn, job: str, rank: int, attempt: str, begin_s: int) -> bytes:
    """The bytes of one file: a header, 0 to 30 records, at times noise, at times a torn end."""
    header = {
        "k": "process", "schema": SCHEMA, "job": job, "rank": rank, "world": 2,
        "attempt": attempt, "pid": draw(st.integers(0, 3)), "boot": draw(st.sampled_from("bc")),
        "role": draw(st.sampled_from(["worker", "worker", "launcher"])),
        "detail": draw(st.sampled_from(["steps", "windows"])),
    }  # fmt: skip
    monotonic = draw(st.booleans())
    skew_ns = 0
    at_ns = begin_s * SECOND_NS
    lines: list[bytes] = []
    for body in [header, *draw(st.lists(_bodies, max_size=30))]:
        stamp = {"t": ORIGIN_NS + at_ns + skew_ns}
        if monotonic:
            stamp["m"] = MONOTONIC_NS + at_ns
        lines.append(json.dumps(body | stamp, separators=(",", ":")).encode())
        at_ns += draw(st.integers(0, 5 * SECOND_NS))
        if draw(st.integers(0, 15)) == 0:
            skew_ns += draw(st.sampled_from([-3600, -1, 2, 600])) * SECOND_NS
        if draw(st.integers(0, 15)) == 0:
            lines.append(draw(_noise))
    torn = draw(st.sampled_from([b"", b"", b'{"k":"step","n":5,"t":17900'])) if lines else b""
    return b"\n".join(lines) + b"\n" + torn


@st.composite
def event_folders(draw: st.DrawFn) -> dict[str, bytes]:
    """Relative path and content of the files of one or two jobs."""
    files: dict[str, bytes] = {}
    for job in draw(st.sampled_from([["j"], ["j"], ["j", "k"]])):
        for attempt in range(draw(st.integers(1, 3))):
            for rank in range(draw(st.integers(1, 2))):
                key = draw(st.sampled_from(["", f"a{attempt}"]))
                content = draw(event_file(job, rank, key, 100 * attempt))
                folder = draw(st.sampled_from(["", "sub/"]))
                files[f"{folder}events-{job}-{attempt}-r{rank}.jsonl"] = content
    return files


def write_files(folder: Path, files: dict[str, bytes]) -> None:
    """Put files below a folder."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def recording(
    *bodies: dict[str, Any], rank: int = 0, begin_s: int = 0, pid: int = 1, **header: object
) -> bytes:
    """The bytes of a plain file: a header, then records one second apart."""
    first = {"k": "process", "schema": SCHEMA, "job": "j", "rank": rank, "pid": pid, "boot": "b"}
    lines = [
        json.dumps(
            body
            | {
                "t": ORIGIN_NS + (begin_s + second) * SECOND_NS,
                "m": MONOTONIC_NS + (begin_s + second) * SECOND_NS,
            },
            separators=(",", ":"),
        )
        for second, body in enumerate([first | header, *bodies])
    ]
    return ("\n".join(lines) + "\n").encode()


def steps(first: int, until: int) -> list[dict[str, Any]]:
    """Bodies of step marks."""
    return [{"k": "step", "n": n} for n in range(first, until)]


GOODBYE = {"k": "process_end"}
