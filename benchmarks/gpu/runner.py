# SPDX-License-Identifier: Apache-2.0
"""Runs items, several at once or one by one, each in processes of its own and within its time."""

import contextlib
import dataclasses
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from outcome import FAIL, PASS, SKIP, TIMEOUT, classify

LOG_BYTES = 32 << 10  # of each item's log that come back
LINE_LETTERS = 300
LINES_OF_FAILURE, LINES_OF_PASS = 15, 2
LEAST_SECONDS = 5  # with less no item is started
LAST_WORDS_SECONDS = 3  # of an item that is ended at its limit
POLL_SECONDS = 0.02


@dataclasses.dataclass(frozen=True)
class Item:
    """`run` is called with the kit and the item's Report. `seconds` is the most that it may take.

    An item that is `alone`, as one that measures time, never runs beside others.
    """

    name: str  # GROUP.NAME
    meaning: str
    seconds: int
    run: Callable
    alone: bool = False

    @property
    def group(self):
        return self.name.partition(".")[0]


class Report:
    """What an item has found so far: it is kept if the item is ended from outside."""

    def __init__(self, path):
        self.path, self.result, self.reason, self.figures = path, None, "", {}

    def note(self, **figures):
        self.figures |= figures
        self._write()

    def end(self, result, reason=""):
        self.result, self.reason = result, reason
        self._write()

    def _write(self):
        new = self.path.with_suffix(".new")
        new.write_text(json.dumps({"result": self.result, "reason": self.reason, "figures": self.figures}))
        new.rename(self.path)


def read_report(path):
    if not path.exists():
        return {"result": None, "reason": "", "figures": {}}
    return json.loads(path.read_text())


def processes_below(pid):
    """A process and its descendants."""
    found = [pid]
    for parent in found:
        with contextlib.suppress(OSError):
            for task in Path(f"/proc/{parent}/task").iterdir():
                with contextlib.suppress(OSError):
                    found += map(int, (task / "children").read_text().split())
    return found


def ask_for_last_words(process):
    """Aborts what an item has started: the trainer then says its step, and Python where it is."""
    for pid in processes_below(process.pid)[1:]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGABRT)


def end_all(process):
    """Ends an item's processes, also those that have outlived it in its session."""
    for pid in processes_below(process.pid) if process.poll() is None else []:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


class Summary:
    """One line of JSON for each item, on the disk as soon as it is known; and the ends of the logs."""

    def __init__(self, out):
        self.rows = []
        self._lines, self._log = (out / "summary.jsonl").open("w"), (out / "log.txt").open("w")
        self._table = out / "table.txt"

    def add(self, row, log=""):
        self.rows.append(row)
        print(json.dumps(row), file=self._lines, flush=True)
        os.fsync(self._lines.fileno())
        if log:
            print(f"==== {row['item']}: {row['result']}\n{log[-LOG_BYTES:]}", file=self._log, flush=True)
        print(f"{row['result']:15} {row['item']:32} {row['seconds']:6.1f} s  {row['reason'] or short(row['figures'])}",
              flush=True)

    def close(self, items=()):
        """Writes and prints the table, in the order of the items."""
        places = {item.name: place for place, item in enumerate(items)}
        text = table(sorted(self.rows, key=lambda row: places.get(row["item"], len(places))))
        self._table.write_text(text)
        print("\n" + text, end="", flush=True)
        self._lines.close()
        self._log.close()


def short(figures):
    """In a line: numbers in few digits, and no lists."""
    shown = {name: value for name, value in figures.items() if not isinstance(value, (list, dict))}
    return ", ".join(f"{name} {value:.6g}" if isinstance(value, float) else f"{name} {value}"
                     for name, value in shown.items())


def table(rows):
    lines = ["| item | result | s | what was found |", "|---|---|---|---|"]
    for row in rows:
        found = "; ".join(filter(None, [row["reason"], short(row["figures"])])).replace("|", "/")
        lines.append(f"| {row['item']} | {row['result']} | {row['seconds']:.1f} | {found} |")
    counts = {}
    for row in rows:
        kind = row["result"].partition("(")[0]
        counts[kind] = counts.get(kind, 0) + 1
    lines += ["", ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items()))]
    return "\n".join(lines) + "\n"


def last_lines(log, count):
    return [line[:LINE_LETTERS] for line in log.strip().splitlines()[-count:]]


class Running:
    """An item whose process runs."""

    def __init__(self, item, command, log, limit):
        self.item, self.log, self.limit = item, log, limit
        self.began = time.monotonic()
        self.is_over = False  # its limit
        self._deadline = self.began + limit
        with log.open("wb") as output:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                                            start_new_session=True)

    @property
    def seconds(self):
        return time.monotonic() - self.began

    def has_ended(self):
        """Whether it needs no more time; at its limit it gets a little for last words."""
        if self.process.poll() is not None:
            return True
        if time.monotonic() < self._deadline:
            return False
        if self.is_over:
            return True
        self.is_over, self._deadline = True, time.monotonic() + LAST_WORDS_SECONDS
        ask_for_last_words(self.process)
        return False


class Runner:
    def __init__(self, command_of, work, summary, seconds, group_seconds, jobs=1):
        """`command_of` makes the command of an item; `seconds` is what all have together.

        Of items that run at once, `jobs` of them, each takes its share of its group's seconds.
        """
        self.command_of, self.work, self.summary, self.jobs = command_of, work, summary, jobs
        self.end = time.monotonic() + seconds
        self.left_of_group = dict(group_seconds)
        self._running = []

    def run(self, items):
        """Those that run alone come after the others."""
        try:
            self._run_at_once([item for item in items if not item.alone], self.jobs)
            self._run_at_once([item for item in items if item.alone], 1)
        finally:
            for running in self._running:
                end_all(running.process)

    def _run_at_once(self, items, jobs):
        waiting = list(items)
        while waiting or self._running:
            while waiting and len(self._running) < jobs:
                self._start(waiting.pop(0), jobs)
            ended = [running for running in self._running if running.has_ended()]
            for running in ended:
                self._end(running, jobs)
            if not ended:
                time.sleep(POLL_SECONDS)

    def _left(self, group, jobs):
        """What is left of a group's seconds, less what its items have taken that still run."""
        if group not in self.left_of_group:
            return self.end - time.monotonic()
        return self.left_of_group[group] - sum(running.seconds / jobs for running in self._running
                                               if running.item.group == group)

    def _start(self, item, jobs):
        left, of_group = self.end - time.monotonic(), self._left(item.group, jobs)
        if min(left, of_group) < LEAST_SECONDS:
            whose = "of the run" if left <= of_group else f"of the group {item.group}"
            self.summary.add(self._row(item, SKIP, 0, f"the time {whose} was over"))
            return
        limit = min(item.seconds, left, of_group)
        self._running.append(Running(item, self.command_of(item), self.work / f"{item.name}.log", limit))

    def _end(self, running, jobs):
        end_all(running.process)
        self._running.remove(running)
        seconds = running.seconds
        if running.item.group in self.left_of_group:
            self.left_of_group[running.item.group] -= seconds / jobs
        returncode = None if running.is_over else running.process.returncode
        self._take(running.item, returncode, running.limit, seconds, running.log.read_text(errors="replace"))

    def _take(self, item, returncode, limit, seconds, log):
        report = read_report(self.work / f"{item.name}.json")
        result, reason = report["result"], report["reason"]
        if returncode is None:
            result, reason = TIMEOUT, f"ended after {limit:.0f} s"
        elif result is None:  # it ended before it could say how
            result = classify(returncode, log)
            result = FAIL if result == PASS else result
            reason = (last_lines(log, 1) or [f"exit code {returncode}"])[0]
        lines = last_lines(log, LINES_OF_PASS if result == PASS else LINES_OF_FAILURE)
        self.summary.add(self._row(item, result, seconds, reason, report["figures"], lines), log)

    @staticmethod
    def _row(item, result, seconds, reason="", figures=None, log=()):
        return {"item": item.name, "result": result, "seconds": round(seconds, 1), "reason": reason,
                "figures": figures or {}, "log": list(log)}
