"""The one table of rules from evidence to cause: the first rule that matches decides.

Order is the argument. Hardware comes first (it explains everything after it), then what kernel and
scheduler say they did, then what the program says, then bare signals and exit codes, and last the
evidence that only shows that some other process failed.
"""

import re
from signal import Signals
from typing import Final

import msgspec


class Rule(msgspec.Struct, frozen=True):
    """One row: any of its conditions is enough."""

    cause: str
    confidence: float
    """0-1: 0.95 the evidence names the cause; 0.8 hardly anything else does this; 0.6 likely;
    0.4 one of a few; 0.2-0.3 a hint."""
    reason: str
    text: str = ""
    """Regular expression over the text, case-insensitive, `^` and `$` per line."""
    signals: frozenset[int] = frozenset()
    exit_codes: frozenset[int] = frozenset()
    slurm_states: frozenset[str] = frozenset()
    secondary: bool = False
    """Shows that something else failed. Its lines are hidden from `own_words` rules."""
    own_words: bool = False
    """Looks only at lines that no secondary rule claims."""


def _xid(*codes: int) -> str:
    """Return the pattern of NVIDIA driver errors with these numbers."""
    numbers = "|".join(str(code) for code in codes)
    return rf"\bxid\b(?: \([^)\n]{{0,40}}\))?[:\s]{{1,4}}(?:{numbers})\b"


# What launchers put before a line: `(Worker pid=7)`, `[default3]:`, `[rank1]: `, `[1,2]<stderr>:`.
_START: Final = r"^(?:\(\w[^)\n]{0,60}\) ?|\[?(?:default|rank) ?\d+\]?: ?|\[\d+,\d+\]<\w+>: ?)*"


def _any(*patterns: str) -> str:
    return "|".join(f"(?:{pattern})" for pattern in patterns)


# Xid numbers and their meaning: NVIDIA, Xid Errors (docs.nvidia.com/deploy/xid-errors).
_HARDWARE: Final = (
    Rule(
        "silent_data_corruption", 0.9, "results differ between chips or repetitions",
        _any(
            r"silent data corruption", r"\bSDC\b[^\n]{0,40}(?:detected|suspected|found)",
            r"result validation[^\n]{0,60}persistent error",
            r"replica digests? (?:differ|mismatch)",
        ),
    ),
    Rule(
        "gpu_sram", 0.9, "uncorrectable error in on-chip memory",
        _any(
            r"\bSRAM\b[^\n]{0,60}uncorrect", r"uncorrect[^\n]{0,60}\bSRAM\b",
            r"\bxid\b[^\n]{0,80}\bSRAM\b",
        ),
    ),
    Rule(
        "gpu_hbm", 0.9, "the driver reports an uncorrectable memory error",
        _any(
            _xid(48, 64, 94, 95, 140), r"uncorrectable (?:double[- ]bit )?ECC error",
            r"\bDBE\b[^\n]{0,40}(?:detected|error)", r"\bHBM\b[^\n]{0,40}(?:uncorrect|ECC error)",
            r"row remap(?:ping|per)?[^\n]{0,40}fail",
        ),
    ),
    Rule(
        "gpu_fault", 0.9, "the chip left the bus or is gone for the driver",
        _any(
            _xid(79, 121, 122, 123, 142, 143), r"fallen off the bus", r"GPU is lost",
            r"\bNV_ERR_RESET_REQUIRED\b", r"GPU (?:node|board) reboot required",
            r"amdgpu[^\n]{0,60}(?:GPU reset|ring \w+ timeout|RAS[^\n]{0,30}uncorrect)",
            r"unable to determine the device handle for GPU",
        ),
    ),
    Rule(
        "gpu_fault", 0.6, "the driver shows no usable chip",
        r"no CUDA-capable device is detected|CUDA-capable device\(s\) is/are busy or unavailable|"
        r"CUDA error: (?:unknown error|hardware stack error)|CUDA_ERROR_NO_DEVICE|"
        r"CUDA driver initialization failed|HW Exception by GPU|GPU Hang\b",
    ),
    Rule(
        "gpu_interconnect", 0.8, "the driver reports an NVLink or NVSwitch error",
        _any(
            _xid(74, 137, *range(144, 151)), r"\bSXid\b[:\s(]", r"uncorrectable NVLink error",
            r"NVLink[^\n]{0,40}(?:fatal|link down|is inactive)",
        ),
    ),
    Rule(
        "gpu_system_processor", 0.9, "the driver lost the chip's management processor (GSP, PMU)",
        _any(_xid(61, 62, 119, 120), r"timeout (?:waiting for|after)[^\n]{0,40}\bGSP\b"),
    ),
    Rule(
        "gpu_thermal", 0.8, "the chip shut down or throttled from heat",
        _any(
            r"GPU[^\n]{0,60}over[- ]?temperature", r"(?:HW|hardware) thermal slowdown",
            r"thermal (?:shutdown|trip)", r"GPU[^\n]{0,40}overheat",
        ),
    ),
    Rule(
        "system_memory", 0.85, "the kernel reports an uncorrected memory error",
        _any(
            r"EDAC MC\d+: \d+ UE\b", r"uncorrected (?:hardware )?memory error",
            r"memory failure: 0x[0-9a-f]+",
        ),
    ),
    Rule(
        "cpu", 0.7, "the kernel reports a machine check",
        _any(r"mce: \[Hardware Error\]", r"machine check exception", r"fatal machine check"),
    ),
    Rule(
        "ssd", 0.8, "the kernel reports a failing disk",
        _any(
            r"nvme\d*[^\n]{0,60}(?:timeout, (?:aborting|reset)|controller is down|removing after)",
            r"critical medium error", r"I/O error, dev (?:nvme|sd)\w+",
        ),
    ),
    Rule("power_supply", 0.8, "the board controller reports it",
         r"\b(?:PSU|power supply)\b[^\n]{0,40}(?:fail|lost|fault)"),
    Rule(
        "nic", 0.8, "the kernel reports a failing network card",
        _any(
            r"async event ?: (?:mlx\S+ )?local catastrophic error",
            r"mlx5_core[^\n]{0,80}(?:fatal|health compromised|device's health|removed|FW reset)",
            r"\b(?:mlx5|bnxt|efa)_?\w*[^\n]{0,40}(?:device (?:error|removed)|adapter fail)",
        ),
    ),
    Rule(
        "network_switch_cable", 0.8, "a network port went down",
        _any(
            r"mlx5[^\n]{0,60}link down", r"async (?:fatal )?event[^\n]{0,40}port[_ ]err(?:or)?",
            r"\bib\d+: (?:link|port) (?:is )?down", r"NET/IB[^\n]{0,60}port error",
        ),
    ),
)  # fmt: skip

_KERNEL_AND_SCHEDULER: Final = (
    Rule(
        "out_of_memory_host", 0.95, "the kernel or scheduler killed it for its memory",
        _any(
            r"out of memory: killed process", r"killed process \d+ \(", r"\boom_reaper\b",
            r"\boom[-_ ]?kill(?:er|ed)?\b", r"exceeded (?:job|step) memory limit",
            r"task \d+: out of memory", r"low on resource: memory",
            r"killed due to (?:the node running low on memory|memory pressure)",
        ),
        slurm_states=frozenset({"OUT_OF_MEMORY", "OOM"}),
    ),
    Rule(
        "node_lost", 0.95, "scheduler or provider says that the node failed",
        _any(
            r"DUE TO NODE FAILURE", r"node failure on \S+", r"compute\.instances\.hostError",
            r"\bNodeNotReady\b", r"node\.kubernetes\.io/unreachable",
            r"\bnode (?:was |is )?(?:lost|unreachable|died)\b", r"its node has died",
        ),
        slurm_states=frozenset({"NODE_FAIL", "NF", "BOOT_FAIL", "BF"}),
    ),
    Rule(
        "planned_maintenance", 0.8, "announced maintenance",
        r"\b(?:scheduled|planned) maintenance|maintenance (?:window|reservation)|"
        r"(?:for|due to) a? ?firmware (?:upgrade|update)",
    ),
    Rule(
        "host_maintenance", 0.85, "the provider serviced the host",
        r"TERMINATE_ON_HOST_MAINTENANCE|\bhost maintenance|\bunplanned maintenance|"
        r"maintenance[- ]event(?!\W+none)|instance-retirement",
    ),
    Rule(
        "preempted", 0.95, "the scheduler or provider says so",
        _any(
            r"DUE TO PREEMPTION", r"compute\.instances\.preempted", r"\bPreemptionByScheduler\b",
            r"spot (?:instance )?interruption", r"spot/instance-action",
            r"\b(?:job|instance|pod|node|VM)\b (?:\S+ ){0,3}(?:is|was|has been|got) preempted\b",
            r"\breceived (?:a )?preemption notice",
        ),
        slurm_states=frozenset({"PREEMPTED", "PR"}),
    ),
    Rule(
        "time_limit", 0.95, "the scheduler says so",
        _any(
            r"DUE TO TIME LIMIT", r"\bDeadlineExceeded\b[^\n]{0,80}deadline",
            r"job killed: walltime", r"\bTERM_RUNLIMIT\b",
            r"exiting program after [\d.]+ minutes",
        ),
        slurm_states=frozenset({"TIMEOUT", "TO", "DEADLINE", "DL"}),
    ),
    Rule(
        "scaled", 0.7, "the launcher changed the number of workers",
        _any(
            r"\b(?:scal|resiz)(?:ed|ing)\b[^\n]{0,30}\bto \d+ (?:workers|ranks|chips|gpus|nodes)",
            r"\bscal(?:ed|ing) (?:up|down|in|out)\b[^\n]{0,30}\b(?:workers|ranks|nodes|replicas)",
            r"detected \d+ new nodes[^\n]{0,40}will restart worker group",
        ),
    ),
    Rule(
        "cancelled", 0.85, "the job was cancelled by hand",
        r"\*\*\* JOB \d+ ON \S+ CANCELLED AT \S+ (?:\*\*\*|DUE TO JOB REQUEUE)",
        slurm_states=frozenset({"CANCELLED", "CA"}),
    ),
)  # fmt: skip

_PROGRAM: Final = (
    Rule(
        "disk_full", 0.95, "a write failed for lack of space",
        _any(
            r"no space left on device", r"disk quota exceeded", r"\bENOSPC\b",
            r"low on resource: ephemeral-storage", r"file size limit exceeded",
        ),
        signals=frozenset({Signals.SIGXFSZ}),
    ),
    Rule(
        "checkpoint_corrupt", 0.9, "a saved file could not be read back",
        _any(
            r"PytorchStreamReader failed", r"failed finding central directory",
            r"invalid header or archive is corrupted", r"SafetensorError[^\n]{0,120}"
            r"(?:header|incomplete|InvalidHeader|MetadataIncomplete)",
            r"UnpicklingError", r"EOFError: Ran out of input", r"\bBadZipFile\b",
            r"checkpoint[^\n]{0,80}(?:corrupt|truncated|checksum (?:mismatch|differs)|incomplete)",
            r"(?:corrupt|truncated)\w*[^\n]{0,40}checkpoint",
        ),
    ),
    Rule(
        "loss_divergence", 0.9, "the loss is infinite or not a number",
        _any(
            r"(?<!best[_ ])(?<!min[_ ])(?<!best_val_)(?<![a-z])loss(?! ?scale)[\"']?(?: is| was)?"
            r"\s*[:=|]?\s*[\"']?[-+]?(?:nan|inf(?:inity)?)\b",
            r"found nan in local (?:grad|forward|loss)", r"non-?finite (?:loss|gradient|grad)",
            r"\bnan\b[^\n]{0,20}\b(?:loss|gradients?)\b[^\n]{0,40}(?:stop|abort|detected|found)",
            r"gradients[^\n]{0,60}is non-finite", r"loss is probably exploding",
            r"loss scale already at minimum", r"minimum loss scale reached",
            r"(?:loss|training) (?:has )?diverged",
        ),
    ),
    Rule(
        "out_of_memory_device", 0.95, "an allocation on the chip failed",
        _any(
            r"(?:CUDA|HIP|XPU|NPU|MPS backend)(?: error:)? out of memory",
            r"(?:torch|cuda)\.OutOfMemoryError", r"CUBLAS_STATUS_ALLOC_FAILED",
            r"RESOURCE_EXHAUSTED:[^\n]{0,120}(?:out of memory|memory space hbm|allocat)",
            r"ran out of memory in memory space hbm", r"Cuda failure[^\n]{0,20}out of memory",
        ),
    ),
    Rule(
        "out_of_memory_host", 0.8, "an allocation on the host failed",
        _any(
            _START + r"MemoryError\b", r"cannot allocate memory", r"std::bad_alloc",
            r"DefaultCPUAllocator[^\n]{0,60}(?:can't|not enough) ?(?:allocate )?memory",
            r"DataLoader worker[^\n]{0,60}killed by signal: Killed",
            r"insufficient shared memory|out of shared memory",
        ),
    ),
    Rule(
        "storage", 0.6, "a file system or object store did not answer",
        _any(
            r"\[Errno 5\] Input/output error", r"stale file handle", r"remote I/O error",
            r"transport endpoint is not connected", r"LustreError[^\n]{0,80}evict",
            r"botocore\.exceptions\.\w*(?:Timeout|Connection)\w*Error",
            r"(?:SlowDown|ServiceUnavailable|InternalError)[^\n]{0,60}\b(?:GetObject|PutObject)",
        ),
    ),
    Rule(
        "hang", 0.8, "a watchdog saw no progress",
        _any(
            r"no progress (?:for|in|since)", r"\bhang (?:detected|suspected)\b",
            r"did not get (?:subsequent|initial) heartbeat",
            r"watchdog got stuck for \d+ seconds", r"\b(?:job|rank|worker)s?\b[^\n]{0,30}\bhung\b",
            r"blocked for more than \d+ seconds",
        ),
    ),
    Rule(
        "network_switch_cable", 0.5, "the transport gave up on a connection",
        _any(
            r"NET/IB[^\n]{0,120}(?:retry exceeded|error 12\b|status=12\b|vendor err 129)",
            r"transport retry counter exceeded",
        ),
    ),
    Rule(
        "collective_timeout", 0.6, "a collective did not finish in time",
        _any(
            r"watchdog caught collective operation timeout",
            r"timed out waiting \d+ ?ms for (?:recv|send) operation",
            r"collective operation timeout", r"monitoredBarrier[^\n]{0,60}timed? ?out",
            r"Timeout at NCCL work", r"wait timeout after \d+ ?ms",
            r"some NCCL operations have failed or timed out",
        ),
    ),
    Rule(
        "dependency", 0.85, "a library is missing or does not fit",
        _any(
            _START + r"(?:ModuleNotFoundError|ImportError)\b", r"undefined symbol: ",
            r"version `\w+' not found", r"cannot open shared object file",
            r"driver version is insufficient for CUDA runtime",
        ),
    ),
    Rule(
        "configuration", 0.7, "command, path or option is wrong",
        _any(
            r"error: (?:unrecognized arguments|the following arguments are required|argument )",
            _START + r"(?:FileNotFoundError|PermissionError|NotADirectoryError)\b",
            r": (?:command not found|permission denied)$", r"error\(s\) in loading state_dict",
            r"can't open file '", r"address already in use",
        ),
        exit_codes=frozenset({126, 127}),
    ),
    Rule(
        "cancelled", 0.7, "interrupted from the keyboard",
        _START + r"KeyboardInterrupt\b|srun: (?:forcing job termination|interrupt)",
        signals=frozenset({Signals.SIGINT}),
    ),
    Rule(
        "software_bug", 0.7, "the program did something the chip or the language forbids",
        _any(
            r"illegal memory access", r"device-side assert triggered", r"misaligned address",
            r"\bsegmentation fault\b", r"^Fatal Python error", r"Assertion [`'\"][^\n]* failed",
            r"CUDA error: invalid (?:argument|configuration|device function)",
            r"memory access fault by GPU", r"\bHSA_STATUS_ERROR_\w*(?:EXCEPTION|VIOLATION)",
        ),
        signals=frozenset(
            {Signals.SIGSEGV, Signals.SIGFPE, Signals.SIGILL, Signals.SIGSYS, Signals.SIGTRAP}
        ),
    ),
    Rule(
        "software_bug", 0.6, "the driver stopped a program that misused the chip",
        _xid(13, 31, 32, 43, 68, 69),
    ),
    Rule(
        "software_bug", 0.6, "an exception that no other rule knows",
        _START + r"(?:[a-zA-Z_]\w*\.)*[A-Z]\w*(?:Error|Exception)(?::|\s*$)",
        own_words=True,
    ),
)  # fmt: skip

_STATUS: Final = (
    Rule(
        "killed", 0.5, "SIGKILL from outside: the kernel short of memory, a scheduler, a person",
        r"signal 9 \(SIGKILL\)|exitcode\s*: -9\b|: killed$|: line \d+: +\d+ killed\b",
        signals=frozenset({Signals.SIGKILL}),
    ),
    Rule(
        "software_bug", 0.5, "a worker crashed with a signal of its own making",
        r"signal \d+ \(SIG(?:SEGV|FPE|ILL)\)|exitcode\s*: -(?:11|8|4)\b",
    ),
    Rule(
        "software_bug", 0.3, "bad access to a mapping: a bug, a file cut short, a full /dev/shm",
        r"signal 7 \(SIGBUS\)|exitcode\s*: -7\b",
        signals=frozenset({Signals.SIGBUS}),
    ),
    Rule(
        "time_limit", 0.6, "the limit of timeout(1) or of processor time",
        signals=frozenset({Signals.SIGXCPU}), exit_codes=frozenset({124}),
    ),
    Rule(
        "killed", 0.4, "a signal that others send, not caught",
        signals=frozenset({Signals.SIGHUP, Signals.SIGQUIT, Signals.SIGUSR1, Signals.SIGUSR2}),
    ),
)  # fmt: skip

_SECONDARY: Final = (
    Rule(
        "gpu_hbm", 0.3, "the driver repaired memory of the chip: perhaps related",
        _xid(63, 92), secondary=True,
    ),
    Rule(
        "peer_failed", 0.3, "the connection to another process broke: that one failed first",
        _any(
            r"connection (?:was )?(?:closed|reset) by (?:remote )?peer", r"\bbroken pipe\b",
            r"\bncclRemoteError\b", r"remote process exit(?:ed|ing)",
            r"unhandled system error", r"remote task has failed", r"\bCoordinationService",
            r"only expected if one of the tasks is unhealthy", r"Barrier timed out",
            r"DataLoader worker[^\n]{0,60}exited unexpectedly", r"store[- ]based barrier",
            r"timed out initializing process group", r"\bactor (?:is dead|died)\b",
            r"\bworker (?:process has )?died\b", r"\b(?:ActorDied|RayActor|WorkerCrashed|OwnerDied)"
            r"Error\b",
            r"socketProgress[^\n]{0,60}closed", r"\bncclSystemError\b", r"NCCL communicator was "
            r"aborted", r"gloo[^\n]{0,80}(?:connection|socket|read error|write error)",
            r"\bRendezvous\w*Error\b", r"Dist(?:Network|Store|Backend)Error",
            r"TCPStore[^\n]{0,80}(?:timed? ?out|failed)", r"connection refused",
        ),
        signals=frozenset({Signals.SIGPIPE}), secondary=True,
    ),
    Rule(
        "peer_failed", 0.25, "stopped because a process beside it had failed",
        _any(
            r"\bChildFailedError\b", r"\bProcessRaisedException\b", r"\bSignalException\b",
            r"got signal: 15", r"signal 15 \(SIGTERM\)", r"sending (?:process \d+ closing )?"
            r"signal SIGTERM", r"\*\*\* STEP \S+ ON \S+ CANCELLED AT \S+ \*\*\*",
            r"job step aborted", r"processes exited with non-zero status",
            r"Horovod has been shut down", r"received SIGTERM", r"SIGTERM received", _xid(45),
        ),
        secondary=True,
    ),
    Rule(
        "software_bug", 0.3, "a call to a chip failed inside a collective, the reason is not given",
        r"unhandled cuda error|\bncclUnhandledCudaError\b", secondary=True,
    ),
    Rule(
        "killed", 0.4, "SIGTERM, not caught: a scheduler, a launcher, a person",
        r"killed by signal: terminated|: line \d+: +\d+ terminated\b", secondary=True,
        signals=frozenset({Signals.SIGTERM}),
    ),
    Rule(
        "software_bug", 0.3, "the process aborted itself",
        r"terminate called after throwing|: line \d+: +\d+ aborted\b|"
        r"signal 6 \(SIGABRT\)|exitcode\s*: -6\b",
        signals=frozenset({Signals.SIGABRT}),
    ),
    Rule(
        "configuration", 0.3, "many programs exit with 2 for a wrong command line",
        exit_codes=frozenset({2}),
    ),
)  # fmt: skip

RULES: Final[tuple[Rule, ...]] = (
    *_HARDWARE,
    *_KERNEL_AND_SCHEDULER,
    *_PROGRAM,
    *_STATUS,
    *_SECONDARY,
)
"""Every rule, in the order in which they are tried."""


def compiled(pattern: str) -> re.Pattern[str]:
    """Return a rule's pattern as it is applied."""
    return re.compile(pattern, re.IGNORECASE | re.MULTILINE)
