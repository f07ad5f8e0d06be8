"""What the user of `instrument`, or of a trainer's callback, chose. No torch here."""

import os
from collections.abc import Callable
from typing import Literal, TypedDict

import msgspec


class Choices(TypedDict, total=False):
    """Arguments that callbacks share with `goodput.instrument`, which documents them."""

    job: str | None
    dir: str | os.PathLike[str] | None
    count_flops: bool
    communication: bool
    chips: int | None
    detail: Literal["auto", "steps", "windows"]
    chip: str
    dtype: str


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """All arguments of `goodput.instrument`, as one value."""

    job: str | None = None
    dir: str | os.PathLike[str] | None = None
    step_of: Callable[[], int] | None = None
    count_flops: bool = False
    communication: bool = True
    chips: int | None = None
    detail: Literal["auto", "steps", "windows"] = "auto"
    chip: str = ""
    dtype: str = ""
