# SPDX-License-Identifier: Apache-2.0
"""Files that cannot be written while a checkpoint is saved: what is said, what is left, what comes after.

Each change that the second save makes fails once, in each way that such a change may: the run ends with
the cause, or goes on without that checkpoint, as checkpoint.on_error has it; what was there stays, and
the end is the same. Where a write is cut short or a call interrupted, nothing is to be seen at all.
Without --config=long some of the changes fail in one way, by chance.
"""

import collections
import dataclasses
import errno
import re
import shutil

from tests.end_to_end import runs
from tests.faults import fault_runs
from tests.faults.fault_runs import ASYNC, KEEP_ONE, PLAIN, TWO_RANKS, Rule
from tests.long import is_long, tell_sample

SAVED_BEFORE = 2  # the step of the first save; the second one is hit
SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EIO)
ACCESS = (errno.EROFS, errno.EACCES, errno.EIO)
ERRORS = {
    "create": SPACE + ACCESS[:2],
    "mkdir": SPACE + ACCESS[:2],
    "fallocate": SPACE,
    "write": SPACE,
    "pwrite": SPACE,
    "fsync": SPACE,
    "rename": ACCESS + (errno.ENOSPC,),
    "unlink": ACCESS,
    "rmdir": ACCESS,
}
ADVICE = {
    errno.ENOSPC: "free some space on that file system",
    errno.EDQUOT: "within your quota",
    errno.EIO: "the disk reports an error",
    errno.EROFS: "mounted read-only: choose another folder",
    errno.EACCES: "check the permissions",
}
STAGE = "mkdir run/checkpoints/step.tmp"
STAGED = re.compile(r"run/checkpoints/step-(\d+)\.tmp-")


@dataclasses.dataclass(frozen=True)
class Fault:
    """An error of one change."""
    who: str
    name: str
    occurrence: int
    path: str
    part: str  # of the save: "save", "latest" or "prune"
    error: int

    def rule(self, moment="before", action=None):
        return Rule(moment, action or str(self.error), self.who, self.name, str(self.occurrence))

    def is_told_in(self, text):
        """By its file, or the folder that is being removed, and what to do."""
        name = self.path.split("/")[2 if self.part == "prune" else -1]
        return re.sub(r"-\d+$", "", name) in text and ADVICE[self.error] in text


def parts_of(operations):
    """The changes of each save, with the part of it that they are of."""
    saves, staged, part = [], None, "save"
    for operation in operations:
        if "run/checkpoints" not in operation.name:
            continue
        begun = STAGED.match(operation.path)
        if begun and begun[1] != staged:
            staged, part = begun[1], "save"
            saves.append([])
        elif ".deleted" in operation.name:
            part = "prune"
        elif "latest" in operation.name:
            part = "latest"
        if saves:
            saves[-1].append((part, operation))
    return saves


class CheckpointFileFaultsTest(fault_runs.FaultTest):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.table = collections.Counter()

    @classmethod
    def tearDownClass(cls):
        fault_runs.print_table(("change", "part", "error", "what happens", "times"),
                               [(*fault, count) for fault, count in sorted(cls.table.items())])
        print(f"{sum(cls.table.values())} faults")

    def count(self, fault, error, told):
        with self.lock:
            self.table[fault.name.split()[0], fault.part, error, told] += 1

    def begin(self, *arguments):
        self.arguments = (*PLAIN, *KEEP_ONE, *arguments)
        self.reference = self.whole(self.arguments)
        self.kept = self.whole((*PLAIN, *arguments, "checkpoint.keep_last=null"))

    def changes(self, who="main"):
        """One change of each name and part in the second save: with any error, which is none."""
        operations = [operation for operation in self.trace_of(self.reference) if operation.who == who]
        first_of = {}
        for part, operation in parts_of(operations)[1]:
            fault = Fault(who, operation.name, operation.occurrence, operation.path, part, 0)
            first_of.setdefault((part, operation.name), fault)
        return list(first_of.values())

    def faults(self, changes, most=None):
        """Each change with each error; without --config=long with one of them, and no more than so many."""
        every = [[dataclasses.replace(change, error=error) for error in ERRORS[change.name.split()[0]]]
                 for change in changes]  # fmt: skip
        chosen = [fault for of_one in every
                  for fault in (of_one if is_long() else [self.chooser.choice(of_one)])]
        if most is not None and not is_long():
            chosen = self.chooser.sample(chosen, most)
        tell_sample(len(chosen), sum(map(len, every)), "faults")
        return chosen

    def check_stops(self, fault):
        folder = self.disk()
        ended = self.run_on(folder, self.arguments, [fault.rule()])
        if fault.part != "save" or (self.arguments[-1:] == ASYNC and ended.code == 0):
            # It is committed; or the save in the background ended when that of the last step was due.
            self.assertEqual(ended.code, 0, ended.output + ended.errors)
            self.assertTrue(fault.is_told_in(ended.output + ended.errors), ended.output + ended.errors)
            self.assertIn("warning: ", ended.output + ended.errors)
        else:
            self.assertEqual(ended.code, 1, ended.output + ended.errors)
            self.assertTrue(fault.is_told_in(ended.errors), ended.errors)
            self.assertEqual(len(re.findall("^error:", ended.errors, re.MULTILINE)), 1, ended.errors)
            left = [name for name in self.checkpoints(folder) if fault_runs.LEFTOVER.search(name)]
            self.assertEqual(left, [])
            self.assertEqual(self.weights(folder, SAVED_BEFORE), self.weights(self.kept, SAVED_BEFORE))
        self.trainer("checkpoint", "verify", str((folder / "disk/run").relative_to(self.folder)))
        self.check_goes_on(folder, self.arguments, self.reference, self.committed(folder))
        self.count(fault, errno.errorcode[fault.error], "ends" if fault.part == "save" else "warning")
        shutil.rmtree(folder)

    def check_warns(self, fault):
        folder = self.disk()
        ended = self.run_on(folder, (*self.arguments, "checkpoint.on_error=warn"), [fault.rule()])
        self.assertEqual(ended.code, 0, ended.output + ended.errors)
        text = ended.output + ended.errors
        self.assertTrue(fault.is_told_in(text), text)
        self.assertIn("warning: ", text)
        is_told_unsaved = "warning: the checkpoint of step 4 was not saved" in text
        self.assertEqual(is_told_unsaved, fault.part == "save", text)
        left = [name for name in self.checkpoints(folder) if fault_runs.LEFTOVER.search(name)]
        if fault.part != "prune":  # what cannot be removed stays until the next start
            self.assertEqual(left, [])
        self.check_same(folder)
        self.count(fault, errno.errorcode[fault.error], "warning, with on_error=warn")
        shutil.rmtree(folder)

    def check_same(self, folder):
        """But for what could not be removed: the end is that of a run without faults."""
        self.assertEqual(self.weights(folder), self.weights(self.reference))
        self.assertEqual(self.losses_of(folder), self.losses_of(self.reference))

    def check_nothing_is_seen(self, case):
        fault, rule, kind = case
        folder = self.disk()
        ended = self.run_on(folder, self.arguments, [rule])
        self.assertEqual(ended.code, 0, ended.output + ended.errors)
        self.assertNotIn("warning", ended.output + ended.errors)
        self.check_end(folder, self.reference)
        self.count(fault, kind, "nothing")
        shutil.rmtree(folder)

    def test_a_run_stops(self):
        self.begin()
        changes = self.changes()
        self.at_once(self.check_stops, self.faults(changes, most=len(changes) // 2))

    def test_a_run_goes_on(self):
        self.begin()
        changes = self.changes()
        self.at_once(self.check_warns, self.faults(changes, most=len(changes) // 2))

    def check_last_is_told(self, way):
        """The save of the last step fails: what the run has in the end is an earlier step, and it says so."""
        self.begin(*way)
        who = "0" if way == TWO_RANKS else "main"
        saves = parts_of([operation for operation in self.trace_of(self.reference) if operation.who == who])
        last = next(operation for part, operation in saves[-1] if operation.kind == "pwrite")
        fault = Fault(who, last.name, last.occurrence, last.path, "save", errno.ENOSPC)
        folder = self.disk()
        ended = self.run_on(folder, (*self.arguments, "checkpoint.on_error=warn"), [fault.rule()])
        self.assertEqual(ended.code, 1, ended.output + ended.errors)
        text = ended.output + ended.errors
        newest = fault_runs.LAST_STEP - 2
        self.assertEqual(self.committed(folder), newest)
        self.assertIn(f"warning: the checkpoint of step {fault_runs.LAST_STEP} was not saved: ", text)
        self.assertTrue(fault.is_told_in(text), text)
        self.assertNotIn("finished at step", text)
        told = (f"the checkpoint of the last step, {fault_runs.LAST_STEP}, was not saved: step {newest} is the newest on "
                "disk, and the same command goes on from it")
        said = [line for line in ended.errors.splitlines() if line.startswith("error: ")]
        self.assertEqual(len(said), 1, ended.errors)
        self.assertRegex(said[0], f"^error: (rank 0: )?step {fault_runs.LAST_STEP}: {re.escape(told)}$")
        self.assertEqual(self.check_goes_on(folder, self.arguments, self.reference, newest), newest)

    def test_a_last_save_that_fails_is_told_with_on_error_warn(self):
        for name, way in (("one rank", ()), ("two ranks", TWO_RANKS), ("in the background", ASYNC)):
            with self.subTest(name):
                self.check_last_is_told(way)

    def test_what_is_cut_short_or_interrupted_goes_on(self):
        self.begin()
        cases = []
        for change in self.changes():
            kind = change.name.split()[0]
            if kind in ("write", "pwrite"):
                always = Rule("half", "short", "main", change.name, "1+")
                cases += [(change, change.rule("half", "short"), "short"), (change, always, "always short")]
            if kind in ("create", "write", "pwrite", "fallocate", "fsync"):
                cases.append((change, change.rule("before", str(errno.EINTR)), "EINTR"))
        chosen = cases if is_long() else self.chooser.sample(cases, len(cases) // 3)
        tell_sample(len(chosen), len(cases), "cut or interrupted changes")
        self.at_once(self.check_nothing_is_seen, chosen)

    def test_an_fsync_that_failed_is_not_tried_again(self):
        """The system forgets what it could not write: a second fsync would say that all is well."""
        self.begin()
        syncs = [dataclasses.replace(change, error=errno.EIO) for change in self.changes()
                 if change.name.startswith("fsync") and change.part == "save"]  # fmt: skip
        self.assertGreaterEqual(len(syncs), 6)
        self.at_once(self.check_not_tried_again, syncs)

    def check_not_tried_again(self, fault):
        folder = self.disk()
        ended = self.run_on(folder, self.arguments, [fault.rule()])
        self.assertEqual(ended.code, 1, ended.output + ended.errors)
        tried = [operation for operation in self.trace_of(folder) if operation.name == fault.name]
        self.assertEqual([operation.error for operation in tried if operation.occurrence >= fault.occurrence],
                         [errno.EIO])
        shutil.rmtree(folder)

    def test_the_start_finds_what_can_be_found_then(self):
        self.begin()
        start = []
        for operation in self.trace_of(self.reference):
            if operation.name == STAGE:
                break
            if "run/checkpoints" in operation.name:
                start.append(Fault("main", operation.name, operation.occurrence, operation.path, "start", 0))
        self.assertGreaterEqual(len(start), 5)  # folder, probe, write, fsync, removal
        self.at_once(self.check_does_not_begin, self.faults(start))

    def check_does_not_begin(self, fault):
        folder = self.disk()
        ended = self.run_on(folder, self.arguments, [fault.rule()])
        self.assertEqual(ended.code, 2, ended.output + ended.errors)
        self.assertIn("checkpoints cannot be kept in", ended.errors)
        self.assertTrue(fault.is_told_in(ended.errors), ended.errors)
        self.assertEqual(self.losses_of(folder), [])
        self.check_goes_on(folder, self.arguments, self.reference, 0)
        self.count(fault, errno.errorcode[fault.error], "does not begin")
        shutil.rmtree(folder)

    def test_in_the_background(self):
        self.begin(*ASYNC)
        changes = self.changes()
        self.at_once(self.check_stops, self.faults(changes, most=len(changes) // 4))

    def test_two_ranks(self):
        self.begin(*TWO_RANKS)
        of_second = self.faults(self.changes("1"))
        self.assertGreaterEqual(len(of_second), 2)  # writes and fsyncs
        changes = self.changes("0")
        self.at_once(self.check_stops, of_second + self.faults(changes, most=len(changes) // 6))


if __name__ == "__main__":
    runs.main()
