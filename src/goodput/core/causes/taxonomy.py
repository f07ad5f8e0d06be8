"""The causes for which a job stops, in groups, with how often Llama 3 405B saw each of them."""

from typing import Final, Literal

import msgspec

Group = Literal["hardware", "network", "host", "software", "planned", "user", "unknown"]

LLAMA3_SOURCE: Final = (
    "The Llama 3 Herd of Models (arXiv 2407.21783), section 3.3.4, table 5: 419 unexpected "
    "interruptions in 54 days on 16,384 H100"
)
LLAMA3_PLANNED: Final = 47
"""Planned interruptions in the same 54 days (firmware upgrades, changes of configuration or data),
beside the 419 of the table."""


class Cause(msgspec.Struct, frozen=True):
    """One leaf of the taxonomy."""

    name: str
    group: Group
    meaning: str
    planned: bool = False
    """Somebody meant it: there is no fault to repair."""
    llama3_name: str = ""
    """Row of table 5 of the Llama 3 paper; empty = not a row there."""
    llama3_count: int = 0
    """Interruptions in that row."""


_TREE: Final = (
    Cause("gpu_fault", "hardware", "a chip failed or left the bus", False, "Faulty GPU", 148),
    Cause("gpu_hbm", "hardware", "memory of a chip failed (HBM)", False, "GPU HBM3 Memory", 72),
    Cause("gpu_sram", "hardware", "on-chip memory failed", False, "GPU SRAM Memory", 19),
    Cause(
        "gpu_system_processor", "hardware", "the processor that manages a chip stopped answering",
        False, "GPU System Processor", 17,
    ),
    Cause(
        "silent_data_corruption", "hardware", "a chip computed wrongly without reporting an error",
        False, "Silent Data Corruption", 6,
    ),
    Cause(
        "gpu_thermal", "hardware", "a chip was too hot, or a sensor said so", False,
        "GPU Thermal Interface + Sensor", 6,
    ),
    Cause("gpu_interconnect", "hardware", "links between the chips of a host failed (NVLink)"),
    Cause("cpu", "hardware", "the host processor failed", False, "CPU", 2),
    Cause("system_memory", "hardware", "memory of the host failed", False, "System Memory", 2),
    Cause("ssd", "hardware", "a disk of the host failed", False, "SSD", 3),
    Cause("power_supply", "hardware", "a power supply failed", False, "Power Supply", 3),
    Cause("server_chassis", "hardware", "chassis or backplane failed", False, "Server Chassis", 2),
    Cause(
        "io_expansion_board", "hardware", "the board of the PCIe devices failed", False,
        "IO Expansion Board", 2,
    ),
    Cause(
        "network_switch_cable", "network", "a switch, cable or port failed", False,
        "Network Switch/Cable", 35,
    ),
    Cause("nic", "network", "a network card failed", False, "NIC", 7),
    Cause(
        "collective_timeout", "network",
        "a collective did not finish in time and nothing says why", False,
        "NCCL Watchdog Timeouts", 7,
    ),
    Cause(
        "host_maintenance", "host", "the host had to be serviced, not announced", False,
        "Host Maintenance", 32,
    ),
    Cause("node_lost", "host", "a whole node stopped answering"),
    Cause("out_of_memory_host", "host", "memory of the host or of its limit ran out"),
    Cause("storage", "host", "a file system or object store failed or did not answer"),
    Cause("disk_full", "host", "a file system or quota was full"),
    Cause("software_bug", "software", "the program failed", False, "Software Bug", 54),
    Cause("dependency", "software", "a library is missing or unfit", False, "Dependency", 2),
    Cause("out_of_memory_device", "software", "memory of a chip ran out"),
    Cause("hang", "software", "a process lived but made no progress"),
    Cause("loss_divergence", "software", "the loss became infinite or not a number"),
    Cause("checkpoint_corrupt", "software", "a checkpoint could not be read"),
    Cause("planned_maintenance", "planned", "an announced service of the machines", True),
    Cause("preempted", "planned", "the machines were taken for something else", True),
    Cause("scaled", "planned", "the job was given another number of machines", True),
    Cause("time_limit", "planned", "the time that was asked for was over", True),
    Cause("cancelled", "user", "a person stopped the job", True),
    Cause("configuration", "user", "a command, path or option was wrong"),
    Cause("killed", "unknown", "ended by a signal, sender not known"),
    Cause("peer_failed", "unknown", "another process failed first; its evidence is elsewhere"),
    Cause("unknown", "unknown", "no evidence"),
)  # fmt: skip

CAUSES: Final[dict[str, Cause]] = {cause.name: cause for cause in _TREE}
"""Every cause by name, group by group."""


def taxonomy_markdown() -> str:
    """Return the taxonomy as a Markdown table, with the count and share of the Llama 3 paper."""
    total = sum(cause.llama3_count for cause in CAUSES.values())
    lines = [
        "| group | cause | meaning | planned | Llama 3, table 5 | count | share |",
        "|---|---|---|---|---|---|---|",
    ]
    for cause in CAUSES.values():
        count = str(cause.llama3_count) if cause.llama3_name else ""
        share = f"{cause.llama3_count / total:.1%}" if cause.llama3_name else ""
        lines.append(
            f"| {cause.group} | `{cause.name}` | {cause.meaning} | "
            f"{'yes' if cause.planned else ''} | {cause.llama3_name} | {count} | {share} |"
        )
    lines.append("")
    lines.append(
        f"Counts: {LLAMA3_SOURCE}; {LLAMA3_PLANNED} planned ones came on top. Shares are computed "
        f"from the counts of all {total}."
    )
    return "\n".join(lines) + "\n"
