# SPDX-License-Identifier: Apache-2.0
"""Logs that cannot be written: a full disk, a quota, a faulty drive under a run that saves elsewhere.

Training goes on to the same losses and weights; the console tells what each log lacks and why. When
there is room again, records are written again, and no half of one is in between.
"""

import errno
import json
import struct
import subprocess

from tests.end_to_end import runs
from tests.faults import fault_runs
from tests.faults.fault_runs import LAST_STEP, PLAIN, TWO_RANKS, Rule

ROWS = "run/logs/metrics.jsonl"
EVENTS = "run/logs/events"
REFUSALS = {
    errno.ENOSPC: "No space left on device; free some space on that file system",
    errno.EDQUOT: "Disk quota exceeded; free some space within your quota",
    errno.EIO: "Input/output error; the disk reports an error",
    errno.EROFS: "Read-only file system; that file system is mounted read-only",
}


def fails(operation, occurrence, error=errno.ENOSPC, who="main"):
    return Rule("before", str(error), who, operation, str(occurrence))


def is_cut_short(operation, occurrence):
    return Rule("half", "short", "main", operation, str(occurrence))


def events_of(path):
    """The events of a file, each with the bytes that it has; the rest must be none."""
    data, events = path.read_bytes(), []
    while data:
        (length,) = struct.unpack_from("<Q", data)
        size = 12 + length + 4
        if size > len(data):
            raise AssertionError(f"{path} ends within an event")
        events.append(data[12:12 + length])
        data = data[size:]
    return events


class LogFaultsTest(fault_runs.FaultTest):

    def setUp(self):
        super().setUp()
        self.reference = self.whole(PLAIN)

    def rows_of(self, folder):
        """The rows of all lines: each must be whole."""
        text = (folder / "disk" / ROWS).read_text()
        self.assertTrue(text.endswith("\n") or not text, text)
        return [json.loads(line) for line in text.splitlines()]

    def steps_of(self, folder):
        """Those trained; the last row is of the validation at the end."""
        return [row["step"] for row in self.rows_of(folder) if row["phase"] == "train"]

    def event_files(self, folder):
        return sorted((folder / "disk/run/logs").glob("events.out.*"))

    def run_to_the_end(self, rules, arguments=PLAIN):
        """A run that ends well in spite of these rules."""
        folder = self.disk()
        ended = self.run_on(folder, arguments, rules)
        self.assertEqual(ended.code, 0, ended.output + ended.errors)
        self.assertEqual(self.weights(folder), self.weights(self.reference))
        return folder, ended.output

    def check_same_losses(self, folder):
        """Compares the rows that are there."""
        expected = self.losses_of(self.reference)
        self.assertEqual([row for row in expected if row in self.losses_of(folder)],
                         self.losses_of(folder))

    def test_records_are_lost_until_there_is_room_again(self):
        for error, why in REFUSALS.items():
            folder, output = self.run_to_the_end([fails(f"write {ROWS}", 2, error),
                                                  fails(f"write {ROWS}", 3, error)])
            self.assertEqual(self.steps_of(folder), [1, 4, 5, 6])
            self.check_same_losses(folder)
            told = [line for line in output.splitlines() if "lacks" in line]
            self.assertEqual(len(told), 2, output)
            self.assertIn("warning: the sink jsonl lacks 1 record so far: cannot write ", told[0])
            self.assertIn("warning: the sink jsonl lacks 2 records: cannot write ", told[1])
            for line in told:
                self.assertIn("metrics.jsonl'", line)
                self.assertIn(why, line)

    def test_half_a_record_is_cut_off_before_the_next(self):
        # Half of it is written, the rest is not, and the file cannot be cut at that moment.
        folder, output = self.run_to_the_end([
            rule for log in (ROWS, EVENTS) for rule in (
                is_cut_short(f"write {log}", 3), fails(f"write {log}", 4),
                fails(f"ftruncate {log}", 1, errno.EIO))
        ])
        self.assertEqual(len(self.steps_of(folder)), LAST_STEP - 1)
        self.check_same_losses(folder)
        (events,) = self.event_files(folder)
        self.assertEqual(len(events_of(events)), len(events_of(self.event_files(self.reference)[0])) - 1)
        self.assertIn("the sink jsonl lacks 1 record: ", output)
        self.assertIn("the sink tensorboard lacks 1 record: ", output)

    def test_a_resume_cuts_off_what_the_run_could_not(self):
        folder, _ = self.run_to_the_end([
            rule for log in (ROWS, EVENTS) for rule in (
                is_cut_short(f"write {log}", 3),
                Rule("before", str(errno.ENOSPC), "main", f"write {log}", "4+"),
                Rule("before", str(errno.EIO), "main", f"ftruncate {log}", "1+"))
        ])
        self.assertFalse((folder / "disk" / ROWS).read_text().endswith("\n"))
        torn = self.event_files(folder)[0]
        with self.assertRaises((AssertionError, struct.error)):
            events_of(torn)
        ended = self.run_on(folder, (*PLAIN, f"training.max_steps={LAST_STEP + 2}"))
        self.assertEqual(ended.code, 0, ended.output + ended.errors)
        self.assertEqual(self.steps_of(folder)[-2:], [LAST_STEP + 1, LAST_STEP + 2])
        self.check_same_losses_up_to(folder, LAST_STEP)
        for events in self.event_files(folder):
            events_of(events)

    def test_rows_that_are_replaced_are_durable_before_they_leave_the_log(self):
        folder = self.with_damage(self.reference)
        ended = self.run_on(folder, PLAIN)
        self.assertEqual(ended.resumed_step(), LAST_STEP - 2, ended.output + ended.errors)
        names = [operation.name for operation in self.trace_of(folder) if operation.error == 0]
        kept = [names.index(f"{kind} run/logs/{name}") for kind, name in (
            ("write", "metrics.replaced.jsonl"), ("fsync", "metrics.replaced.jsonl"))]
        replaced = names.index(f"rename {ROWS}.tmp {ROWS}")
        self.assertIn("fsync run/logs", names[kept[1]:replaced])
        self.assertEqual(sorted([*kept, replaced]), [*kept, replaced])

    def check_same_losses_up_to(self, folder, last):
        rows = [row for row in self.losses_of(folder) if row[1] <= last]
        self.assertEqual([row for row in self.losses_of(self.reference) if row in rows], rows)

    def test_a_ranks_own_log(self):
        folder = self.disk()
        log = "write run/logs/rank_.log"
        full = [Rule("before", str(errno.ENOSPC), who, log, "3+") for who in ("0", "1")]
        ended = self.run_on(folder, (*PLAIN, *TWO_RANKS), full)
        self.assertEqual(ended.code, 0, ended.output + ended.errors)
        self.assertRegex(ended.output, r"(?m)^\[rank 1\] warning: rank_1\.log lacks \d+ records: cannot write ")
        self.assertRegex(ended.output, r"(?m)^warning: rank_0\.log lacks \d+ records: cannot write ")
        self.assertEqual(self.steps_of(folder), list(range(1, LAST_STEP + 1)))

    def test_what_cannot_be_opened_is_told_before_the_first_step(self):
        for operation, name in ((f"create {ROWS}", "metrics.jsonl"), (f"create {EVENTS}", "events.out"),
                                (f"write {EVENTS}", "events.out"), ("mkdir run/logs", "logs")):
            folder = self.disk()
            ended = self.run_on(folder, PLAIN, [fails(operation, 1)])
            self.assertEqual(ended.code, 2, ended.output + ended.errors)
            self.assertIn("logs cannot be kept in 'disk/run/logs'", ended.errors)
            self.assertIn(name, ended.errors)
            self.assertNotIn("step 1", ended.output)

    def test_a_screen_that_is_a_full_disk(self):
        for arguments in (PLAIN, (*PLAIN, *TWO_RANKS)):
            with open("/dev/full", "w", encoding="utf-8") as full:
                folder = self.disk()
                process = subprocess.Popen([runs.TRAINER, *arguments, "exp_dir=disk/run"], cwd=folder,
                                           stdin=subprocess.DEVNULL, stdout=full,
                                           stderr=subprocess.PIPE, text=True)
                errors = process.communicate(timeout=runs.TIMEOUT_SECONDS)[1]
            self.assertEqual(process.returncode, 0, errors)
            self.assertRegex(errors, r"warning: standard output lacks \d+ records: No space left on device")
            self.assertEqual(self.steps_of(folder), list(range(1, LAST_STEP + 1)))


if __name__ == "__main__":
    runs.main()
