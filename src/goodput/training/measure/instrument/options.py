"""What the user of `instrument` chose, as one value. No torch here."""

import os
from collections.abc import Callable
from typing import Literal

import msgspec


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """Arguments of `goodput.instrument`, which documents them."""

    job: str | None = None
    directory: str | os.PathLike[str] | None = None
    step_of: Callable[[], int] | None = None
    count_flops: bool = False
    communication: bool = True
    chips: int | None = None
    detail: Literal["auto", "steps", "windows"] = "auto"
    chip: str = ""
    dtype: str = ""
