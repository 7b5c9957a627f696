# SPDX-License-Identifier: Apache-2.0
"""Runs a training process and reads off, from outside, when its steps ended and what they cost.

Both sides are measured in the same way: wall times come from the JSON lines that they write, CPU
times from /proc, sampled while they run and interpolated at the ends of the steps.
"""

import bisect
import contextlib
import dataclasses
import json
import math
import os
import signal
import subprocess
import time
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")
SAMPLE_SECONDS = 0.05
# Steps before the measured ones: caches, page tables and the allocator settle.
WARM_UP_STEPS = 2


@dataclasses.dataclass
class Measurement:
    """One run. Seconds; per step where the name says so. CPU time and memory of all processes."""

    start_seconds: float  # from the command to the start of step 1
    step_seconds: float
    step_cpu_seconds: float
    peak_resident_mib: float
    losses: list


def processes_of(pid):
    """A process and all below it: a launcher and its ranks."""
    found = [pid]
    for parent in found:
        for task in Path(f"/proc/{parent}/task").iterdir():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # a thread has ended
                found += map(int, (task / "children").read_text().split())
    return found


def kill_all(process):
    """Ends a process and all below it, and waits for it."""
    for pid in processes_of(process.pid) if process.poll() is None else []:
        os.kill(pid, signal.SIGKILL)
    process.wait()


def cpu_seconds(pid, with_ended_children=False):
    """User and system time of all threads so far."""
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return sum(map(int, fields[11 : 15 if with_ended_children else 13])) / TICKS


def peak_resident_mib(pid):
    with open(f"/proc/{pid}/status") as file:
        line = next(line for line in file if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def interpolate(samples, moment):
    """The CPU time at a moment, from (moment, CPU time) pairs in order."""
    right = bisect.bisect(samples, (moment,))
    if right == 0 or right == len(samples):
        raise ValueError("a step ended outside of the samples")
    (t0, c0), (t1, c1) = samples[right - 1], samples[right]
    return c0 + (c1 - c0) * (moment - t0) / (t1 - t0)


def read_rows(log, read_row):
    """The rows of a log that is still being written."""
    if not log.exists():
        return []
    text = log.read_text()
    lines = text[: text.rfind("\n") + 1].splitlines()
    return [read_row(json.loads(line)) for line in lines]


def without_settling(rows, settle_seconds):
    """The rows but for those that ended before a program has trained that long."""
    return [row for row in rows if row["ended"] - rows[0]["ended"] >= settle_seconds]


def sample_until(process, rows_so_far, steps, samples, most_seconds):
    """Samples CPU time until there are that many steps, or the measured ones have taken that long; returns
    their rows."""
    while True:
        samples.append((time.time(), sum(map(cpu_seconds, processes_of(process.pid)))))
        rows = rows_so_far()
        if len(rows) > WARM_UP_STEPS and rows[-1]["ended"] - rows[WARM_UP_STEPS - 1]["ended"] > most_seconds:
            steps = min(steps, len(rows))
        if len(rows) >= steps and samples[-1][0] >= rows[steps - 1]["ended"]:
            return rows[:steps]
        if process.poll() is not None:
            raise RuntimeError(f"it ended after {len(rows)} of {steps} steps")
        time.sleep(SAMPLE_SECONDS)


def measure(command, environment, folder, log, steps, read_row, at_end=None, most_seconds=math.inf,
            settle_seconds=0):
    """Runs a command until its log has `steps` rows, or those after the warm-up span `most_seconds`, then kills
    it: saving is not measured. Rows of its first `settle_seconds` do not count.

    `read_row` makes of a row of the log {"began", "ended", "loss"}, in seconds since 1970.
    `at_end` is called with the ids of the processes, which go on, before they are killed.
    """
    samples = []
    output = folder / "output"
    with open(output, "wb") as file:
        began = time.time()
        process = subprocess.Popen(command, env=environment, stdout=file, stderr=file)
        try:
            rows = sample_until(process, lambda: without_settling(read_rows(log, read_row), settle_seconds),
                                steps, samples, most_seconds)
            resident = sum(map(peak_resident_mib, processes_of(process.pid)))
            if at_end is not None:
                at_end(processes_of(process.pid))
        except (RuntimeError, FileNotFoundError) as error:
            raise RuntimeError(f"{command[0]}: {error}\n{output.read_text()}") from error
        finally:
            kill_all(process)
    first, last = rows[WARM_UP_STEPS - 1]["ended"], rows[-1]["ended"]
    measured = len(rows) - WARM_UP_STEPS
    return Measurement(
        start_seconds=rows[0]["began"] - began,
        step_seconds=(last - first) / measured,
        step_cpu_seconds=(interpolate(samples, last) - interpolate(samples, first)) / measured,
        peak_resident_mib=resident,
        losses=[row["loss"] for row in rows],
    )
