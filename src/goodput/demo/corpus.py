"""The text that the demo learns: Python's own language reference, which ships inside Python.

No download and nothing to license: `pydoc_data.topics` is the help text of the running interpreter.
"""

from typing import Final

VALIDATION_SHARE: Final = 0.05
"""Last part of the text, never trained on."""


def corpus() -> tuple[bytes, bytes]:
    """Return the text as UTF-8 bytes: (for training, for validation), about 0.7 MB in all."""
    # Importing it costs tens of milliseconds, which belongs to the training process alone.
    from pydoc_data.topics import topics

    text = "\n\n".join(topics[name] for name in sorted(topics)).encode()
    cut = int(len(text) * (1 - VALIDATION_SHARE))
    return text[:cut], text[cut:]
