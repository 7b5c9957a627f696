# SPDX-License-Identifier: Apache-2.0
"""Programs in pseudo-terminals, as users have them: output, width and a keyboard."""

import fcntl
import os
import pty
import select
import struct
import termios
import time


class Terminal:
    """A program with a terminal of its own; text goes in by `type`, and comes out by `read_until`."""

    def __init__(self, command, columns, timeout_seconds, **options):
        self.output = ""
        self.timeout_seconds = timeout_seconds
        self.pid, self.descriptor = pty.fork()
        if self.pid == 0:
            self._become(command, columns, **options)

    @staticmethod
    def _become(command, columns, cwd, environment, before=lambda: None):
        """In the child; `before` is called at the end of all preparation."""
        try:
            os.chdir(cwd)
            size = struct.pack("HHHH", 50, columns, 0, 0)
            fcntl.ioctl(0, termios.TIOCSWINSZ, size)
            before()
            os.execve(command[0], command, environment)
        finally:
            os._exit(127)

    def type(self, text):
        os.write(self.descriptor, text.encode())

    def read_until(self, is_enough):
        """Reads until `is_enough` of what has not been taken yet; returns that and forgets it.

        Without an argument that is fulfilled: TimeoutError, or EOFError where the program has ended.
        """
        deadline = time.monotonic() + self.timeout_seconds
        while not is_enough(self.output):
            left = deadline - time.monotonic()
            ready, _, _ = select.select([self.descriptor], [], [], max(left, 0))
            if not ready:
                raise TimeoutError(f"in {self.timeout_seconds} s came only: {self.output!r}")
            self.output += self._read()
        taken, self.output = self.output, ""
        return taken

    def _read(self):
        try:
            data = os.read(self.descriptor, 65536)
        except OSError:  # how Linux says that nobody has the other end open any more
            data = b""
        if not data:
            raise EOFError(f"the program ended; it wrote: {self.output!r}")
        return data.decode()

    def end(self):
        """Ends the program, if it has not ended, and returns its exit code."""
        os.close(self.descriptor)  # hangs up
        _, status = os.waitpid(self.pid, 0)
        return os.waitstatus_to_exitcode(status)


def run(command, columns, timeout_seconds, **options):
    """What a program that reads nothing writes to a terminal, lines ended as in files, and its exit
    code."""
    terminal = Terminal(command, columns, timeout_seconds, **options)
    try:
        terminal.read_until(lambda text: False)
    except EOFError:
        pass
    return terminal.output.replace("\r\n", "\n"), terminal.end()
