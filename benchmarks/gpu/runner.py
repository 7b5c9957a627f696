# SPDX-License-Identifier: Apache-2.0
"""Runs items one after the other, each in processes of its own and within its time."""

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


@dataclasses.dataclass(frozen=True)
class Item:
    """`run` is called with the kit and the item's Report. `seconds` is the most that it may take."""

    name: str  # GROUP.NAME
    meaning: str
    seconds: int
    run: Callable

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
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(LAST_WORDS_SECONDS)


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

    def close(self):
        """Writes and prints the table."""
        text = table(self.rows)
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


class Runner:
    def __init__(self, command_of, work, summary, seconds, group_seconds):
        """`command_of` makes the command of an item; `seconds` is what all have together."""
        self.command_of, self.work, self.summary = command_of, work, summary
        self.end = time.monotonic() + seconds
        self.left_of_group = dict(group_seconds)

    def run(self, items):
        for item in items:
            left = self.end - time.monotonic()
            of_group = self.left_of_group.get(item.group, left)
            if min(left, of_group) < LEAST_SECONDS:
                whose = "of the run" if left <= of_group else f"of the group {item.group}"
                self.summary.add(self._row(item, SKIP, 0, f"the time {whose} was over"))
                continue
            self._run_one(item, min(item.seconds, left, of_group))

    def _run_one(self, item, limit):
        began = time.monotonic()
        path = self.work / f"{item.name}.log"
        with path.open("wb") as log:
            process = subprocess.Popen(self.command_of(item), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                       start_new_session=True)
            try:
                returncode = process.wait(limit)
            except subprocess.TimeoutExpired:
                returncode = None
                ask_for_last_words(process)
            finally:
                end_all(process)
        seconds = time.monotonic() - began
        if item.group in self.left_of_group:
            self.left_of_group[item.group] -= seconds
        self._take(item, returncode, limit, seconds, path.read_text(errors="replace"))

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
