"""Ascend (NPU) runtime errors: `[ERROR] <time> (PID:.., RankID:..) ERR..`, and HCCL's."""

import re
from typing import Final

from goodput.training.measure.readers.logs.clock import iso_ns
from goodput.training.measure.readers.logs.story import UNKNOWN, Finish
from goodput.training.measure.readers.logs.text import Story

_ERROR: Final = re.compile(
    rb"\[ERROR\] (\d{4}-\d\d-\d\d)-(\d\d:\d\d:\d\d) \(PID:\d+, Device:-?\d+, RankID:(-?\d{1,7})\) "
    rb"(ERR\d+.*)"
)


class Ascend:
    """What torch_npu and HCCL print when a rank fails."""

    name = "ascend"
    signs = (b", RankID:", b"HCCL_BLOCKING_WAIT")
    needles = (b", RankID:", b"HCCL_BLOCKING_WAIT")

    def line(self, line: bytes, story: Story) -> None:
        """Take one line of interest."""
        text = line.strip().decode(errors="replace")
        found = _ERROR.search(line)
        if found is None:
            if b"HCCL_BLOCKING_WAIT" in line:
                story.settle()
                story.over(Finish("failed", "collective_timeout", evidence=text))
            return
        at = iso_ns(found[1] + b" " + found[2])
        if at == UNKNOWN:
            return
        story.settle()
        story.over(
            Finish("failed", "", evidence=text, at_ns=at, noticed_at_ns=at, rank=int(found[3]))
        )

    def flush(self, story: Story) -> None:
        """Nothing is held back."""
