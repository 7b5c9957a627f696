# SPDX-License-Identifier: Apache-2.0
"""Launches of several nodes, on two hosts, whose screens are read while they run."""

import contextlib
import json
import os
import signal
import threading
import time

from tests.end_to_end import runs
from tests.launchers.programs import LauncherTest
from tests.launchers.two_hosts import ADDRESSES, TwoHosts
from tests.ports import free_port

# A node that is lost is noticed within nine seconds, and one that is busy is not taken for lost.
QUICK = "--rdzv-conf=keep_alive_interval=3,join_timeout=60,last_call_timeout=5"


def processes_below(pid):
    """All processes that a process has started, and theirs."""
    below = runs.children(pid)
    return below + [each for child in below for each in processes_below(child)]


class Node:
    """A launch on one host, and what it has printed so far."""

    def __init__(self, process):
        self.process = process
        self.text = ""
        self.times = []  # the length of the text with each line of it, and when that came
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        with self.process.stdout as screen:
            for line in screen:
                self.text += line
                self.times.append((len(self.text), time.monotonic()))

    def wait_for(self, text, seconds=runs.TIMEOUT_SECONDS, start=0):
        """Seconds until it has printed the text, behind `start` characters."""
        begin = time.monotonic()
        while text not in self.text[start:]:
            ended = not self.reader.is_alive()
            if (ended and text not in self.text[start:]) or time.monotonic() > begin + seconds:
                raise AssertionError(f"no {text!r} in:\n{self.text}")
            time.sleep(0.02)
        return time.monotonic() - begin

    def time_of(self, text):
        """When the line with this text came, which it has printed."""
        end = self.text.index(text) + len(text)
        while self.times[-1][0] < end:  # the reader is just about to note it
            time.sleep(0.02)
        return next(when for length, when in self.times if length >= end)

    def finish(self):
        code = self.process.wait(timeout=runs.TIMEOUT_SECONDS)
        self.reader.join(timeout=runs.TIMEOUT_SECONDS)
        return code

    def kill(self):
        """As a power cut does: nobody on it can say anything any more."""
        for pid in [self.process.pid, *processes_below(self.process.pid)]:
            with contextlib.suppress(ProcessLookupError):  # it may have just ended
                os.kill(pid, signal.SIGSTOP)  # all at once
        for pid in [*processes_below(self.process.pid), self.process.pid]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


class NodesTest(LauncherTest):

    def setUp(self):
        super().setUp()
        self.hosts = TwoHosts(self.folder)
        self.addCleanup(self.hosts.remove)
        self.port = str(free_port())

    def node(self, host, *arguments, program=runs.TRAINER):
        return Node(self.start_launcher(*self.hosts.command(host, program, "launch", *arguments)))

    def static(self, node_rank, address=ADDRESSES[0], nodes=2, quick=QUICK):
        return [f"--nnodes={nodes}", f"--node-rank={node_rank}", f"--master-addr={address}",
                f"--master-port={self.port}", quick]

    def elastic(self, nodes="1:2", endpoint=ADDRESSES[0]):
        return [f"--nnodes={nodes}", "--rdzv-backend=c10d", f"--rdzv-endpoint={endpoint}:{self.port}", QUICK]

    def ends(self, exp_dir):
        return [json.loads(line) for line in (self.folder / exp_dir / "ends.jsonl").read_text().splitlines()]
