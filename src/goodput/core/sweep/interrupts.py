"""Ctrl-C as a value: nothing is cut short between starting a process and knowing about it."""

import os
import signal
import threading
from types import FrameType
from typing import Self


class Interrupts:
    """While entered, the first SIGINT sets a flag and wakes whoever waits on `fileno()`.

    The second one raises KeyboardInterrupt as ever, so that code which never comes back to look at
    the flag can be left. Does nothing outside the main thread, or where the program has a handler
    of its own or ignores the signal.
    """

    def __init__(self) -> None:
        self.seen = False
        self._installed = False
        self._reader, self._writer = os.pipe()

    def __enter__(self) -> Self:
        main = threading.current_thread() is threading.main_thread()
        if main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._handle)
            self._installed = True
        return self

    def __exit__(self, *_: object) -> None:
        if self._installed:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        os.close(self._reader)
        os.close(self._writer)

    def fileno(self) -> int:
        """Return the descriptor that becomes readable at the first SIGINT."""
        return self._reader

    def raise_if_seen(self) -> None:
        """Raise the KeyboardInterrupt that was held back.

        Raises:
            KeyboardInterrupt: SIGINT came since this was entered.
        """
        if self.seen:
            raise KeyboardInterrupt

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.seen:
            signal.default_int_handler(number, frame)
        self.seen = True
        os.write(self._writer, b"!")
