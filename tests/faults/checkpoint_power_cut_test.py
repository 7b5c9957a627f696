# SPDX-License-Identifier: Apache-2.0
"""A power cut at every change of a file that a run makes: what the disk may hold then, by disk_model, and
that there is always a good checkpoint on it, none older than the last that the run had gone on from.

The journal of a run is played up to each change; of what was not synced then, nothing, all, only names,
only sizes, and by chance any part is kept. Every such disk is looked at here, byte by byte, against what
the run has written; a sample, of different ones only, is given to the trainer, which goes on to the same
losses. Without --config=long the sample is small.
"""

import collections
import copy
import dataclasses
import hashlib
import re
import shutil

from tests.end_to_end import runs
from tests.faults import disk_model, fault_runs
from tests.faults.fault_runs import ASYNC, KEEP_ONE, KEEP_TWO, PLAIN, TOKENIZED, TWO_RANKS
from tests.long import is_long, tell_sample

LONG_BY_CHANCE, LONG_RESUMED = 40, 400
BY_CHANCE = LONG_BY_CHANCE if is_long() else 3  # disks a change
RESUMED = LONG_RESUMED if is_long() else 8  # disks a journal
STAGED = re.compile(r"run/checkpoints/step-(\d{8})\.tmp-\d+")
CHECKPOINTS = "run/checkpoints/"


class GoneOn:
    """The newest step that a run has gone on from: it would not have, were it not durable.

    Not by what the journal has of fsyncs: then a missing one would not be missed.
    """

    def __init__(self, step, in_background):
        self.in_place = self.step = step
        self.in_background = in_background

    def see(self, change):
        staged = STAGED.fullmatch(change.path)
        if staged and change.kind in ("rename", "exchange"):
            self.in_place = int(staged[1])
        elif change.kind == "sync":
            return
        elif change.path.startswith(CHECKPOINTS) or not self.in_background:
            self.step = self.in_place


def checkpoints_of(found):
    """Files by name, of each committed name on a disk."""
    checkpoints = collections.defaultdict(dict)
    for path, content in found.items():
        step, _, name = path.removeprefix(CHECKPOINTS).partition("/")
        if path.startswith(CHECKPOINTS) and re.fullmatch(r"step-\d{8}", step) and name:
            checkpoints[int(step[5:])][name] = content
    return checkpoints


@dataclasses.dataclass
class Left:
    """A disk that a power cut may leave."""
    found: dict
    committed: int  # the step that must not be lost
    kind: str

    def __str__(self):
        return f"{self.kind}, step {self.committed} committed: {sorted(self.found)}"

    def key(self):
        return hashlib.sha256(repr(sorted(self.found.items())).encode()).digest()


class Cuts:
    """Power cuts at each change of a journal, on a disk with this step's checkpoint and older ones."""

    def __init__(self, disk, changes, committed=0, in_background=False):
        self.disk, self.changes = disk, changes
        self.gone_on = GoneOn(committed, in_background)
        before = checkpoints_of(disk_model.tree(disk.root))
        self.good = {step: files for step, files in before.items() if step <= committed}

    def play(self, change):
        self.disk.apply(change)
        self.gone_on.see(change)
        staged = STAGED.fullmatch(change.path)
        if staged and change.kind in ("rename", "exchange"):
            # What the run believes to have written.
            self.good[int(staged[1])] = checkpoints_of(disk_model.tree(self.disk.root))[int(staged[1])]

    def disks(self, chooser):
        for change in self.changes:
            self.play(change)
            for kind, found in disk_model.extremes(self.disk.root).items():
                yield Left(found, self.gone_on.step, kind)
            for _ in range(BY_CHANCE):
                yield Left(disk_model.some_of(self.disk.root, chooser), self.gone_on.step, "by chance")

    def good_steps(self, left):
        return [step for step, files in checkpoints_of(left.found).items() if files == self.good.get(step)]

    def is_lost(self, left):
        return left.committed > max(self.good_steps(left), default=0)

    def has_damaged(self, left):
        return len(checkpoints_of(left.found)) > len(self.good_steps(left))


class CheckpointPowerCutTest(fault_runs.FaultTest):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.table = []
        tell_sample(BY_CHANCE, LONG_BY_CHANCE, "disks by chance after each change")
        tell_sample(RESUMED, LONG_RESUMED, "disks of each run given to the trainer")

    @classmethod
    def tearDownClass(cls):
        fault_runs.print_table(
            ("run", "changes", "disks", "different", "with a damaged one", "gone on from"), cls.table)

    def cut_everywhere(self, name, arguments, cuts, whole):
        different, count = {}, 0
        for left in cuts.disks(self.chooser):
            count += 1
            self.assertFalse(cuts.is_lost(left), f"step {left.committed} is lost: {left.kind}")
            different.setdefault(left.key(), left)
        damaged = [left for left in different.values() if cuts.has_damaged(left)]
        chosen = self.chooser.sample(damaged, min(len(damaged), RESUMED // 4))
        others = [left for left in different.values() if not cuts.has_damaged(left)]
        chosen += self.chooser.sample(others, min(len(others), RESUMED - len(chosen)))
        self.at_once(lambda left: self.check_goes_on_from(left, arguments, whole), chosen)
        self.table.append((name, len(cuts.changes), count, len(different), len(damaged), len(chosen)))

    def check_goes_on_from(self, left, arguments, whole):
        folder = self.disk()
        disk_model.write_tree(left.found, folder / "disk")
        ended = self.run_on(folder, arguments)
        self.assertEqual(ended.code, 0, f"{left.kind}: {ended.output}{ended.errors}")
        self.assertGreaterEqual(ended.resumed_step(), left.committed, left.kind)
        resumed = ended.resumed_step()
        self.check_end(folder, whole, resumed)
        shutil.rmtree(folder)

    def recorded(self, arguments, template=None, rules=()):
        """A run with its journal: its folder, the disk before it, the changes."""
        folder = self.disk(template)
        disk = disk_model.Disk(folder / "disk")
        ended = self.run_on(folder, arguments, rules, journal=True)
        self.assertEqual(ended.code, 0, ended.errors)
        changes = disk_model.read_journal(folder / "journal")
        return folder, disk, changes

    def check_nothing_escaped(self, folder, cuts):
        self.assertEqual(disk_model.tree(cuts.disk.root), disk_model.read_tree(folder / "disk"))

    def cut_new_run(self, name, *arguments):
        arguments = (*PLAIN, *KEEP_ONE, *arguments)
        whole, disk, changes = self.recorded(arguments)
        cuts = Cuts(disk, changes, in_background=ASYNC[0] in arguments)
        self.cut_everywhere(name, arguments, cuts, whole)
        self.check_nothing_escaped(whole, cuts)

    def test_one_rank(self):
        self.cut_new_run("one rank")

    def test_two_ranks(self):
        self.cut_new_run("two ranks", *TWO_RANKS)

    def test_in_the_background(self):
        self.cut_new_run("one rank, async", *ASYNC)

    def test_two_ranks_in_the_background(self):
        self.cut_new_run("two ranks, async", *TWO_RANKS, *ASYNC)

    def test_a_replacement(self):
        arguments = (*PLAIN, *KEEP_TWO)
        whole, _, _ = self.recorded(arguments)
        damaged = self.with_damage(whole)
        for name, rules in (("replace", ()), ("replace without exchange", (fault_runs.NO_EXCHANGE,))):
            folder, disk, changes = self.recorded(arguments, damaged, rules)
            cuts = Cuts(disk, changes, committed=fault_runs.LAST_STEP - 2)
            self.cut_everywhere(name, arguments, cuts, whole)
            self.check_nothing_escaped(folder, cuts)

    def test_a_missing_fsync_is_seen(self):
        """The model and the checks do find it where a program does not wait for the disk."""
        self.write("characters.txt", "".join(sorted(set(runs.TEXT))))
        self.linked = (*self.linked, "characters.txt")
        _, disk, changes = self.recorded((*PLAIN, *KEEP_ONE, *TOKENIZED))
        cuts = Cuts(copy.deepcopy(disk), changes)
        self.assertFalse(any(cuts.is_lost(left) for left in cuts.disks(self.chooser)))
        staged = r"step-\d+\.tmp-\d+"
        for forgotten in (staged + r"/model\.safetensors", staged + r"/optimizer\.safetensors",
                          staged + r"/attachments/characters\.txt", staged + "/attachments",
                          staged + r"/manifest\.json", staged, ""):
            name = re.compile((CHECKPOINTS + forgotten).rstrip("/"))
            kept = [change for change in changes if change.kind != "sync" or not name.fullmatch(change.path)]
            self.assertLess(len(kept), len(changes), forgotten)
            cuts = Cuts(copy.deepcopy(disk), kept)
            self.assertTrue(any(cuts.is_lost(left) for left in cuts.disks(self.chooser)), forgotten)


if __name__ == "__main__":
    runs.main()
