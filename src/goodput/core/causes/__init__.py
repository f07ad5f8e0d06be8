"""Why an attempt ended: a taxonomy of root causes and a classifier of the evidence for them.

taxonomy.py holds the causes, rules.py the one ordered table of rules, classify.py applies it.
"""

from goodput.core.causes.classify import Verdict, classify
from goodput.core.causes.rules import RULES, Rule
from goodput.core.causes.taxonomy import (
    CAUSES,
    LLAMA3_PLANNED,
    LLAMA3_SOURCE,
    Cause,
    Group,
    taxonomy_markdown,
)

__all__ = [
    "CAUSES",
    "LLAMA3_PLANNED",
    "LLAMA3_SOURCE",
    "RULES",
    "Cause",
    "Group",
    "Rule",
    "Verdict",
    "classify",
    "taxonomy_markdown",
]
