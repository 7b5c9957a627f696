# SPDX-License-Identifier: Apache-2.0
"""Signals in the midst of a save: it is finished, and so is the run, with 128 + the signal's number; the same
command goes on from the very step that it had come to, and ends as a run that nothing interrupts.

The moments are taken from the trace of a whole run (see fault_runs.py): changes of files within a save.
"""

import json
import signal

from tests.end_to_end import runs
from tests.faults import fault_runs
from tests.faults.fault_runs import ASYNC, KEEP_ONE, PLAIN, TWO_RANKS, Rule

WAYS = {
    "one rank": (),
    "one rank, async": ASYNC,
    "two ranks": TWO_RANKS,
    "two ranks, async": (*TWO_RANKS, *ASYNC),
}


class CheckpointSignalsTest(fault_runs.FaultTest):

    def saves_of(self, arguments):
        """A whole run, and what it does to files of checkpoints that are not committed yet."""
        whole = self.whole(arguments)
        return whole, [change for change in self.trace_of(whole) if "step.tmp" in change.name]

    def stop_at(self, arguments, changes, actions):
        """A run that gets signals at changes, one after the other, and its folder."""
        folder = self.disk()
        rules = [Rule("before", action, change.who, change.name, str(change.occurrence))
                 for change, action in zip(changes, actions)]
        return self.run_on(folder, arguments, rules), folder

    def check_nothing_is_lost(self, folder, arguments, whole):
        """The run goes on from the last step that it has told of."""
        last = max(step for _, step, _ in self.losses_of(folder))
        resumed = self.check_goes_on(folder, arguments, whole, self.committed(folder))
        self.assertEqual(resumed, last)

    def within_save(self, changes, step, who=None):
        """Those of the save of a step, on all ranks or one."""
        return [change for change in changes
                if f"step-{step:08d}" in change.path and who in (None, change.who)]

    def each_way(self, check):
        for name, way in WAYS.items():
            with self.subTest(name):
                arguments = (*PLAIN, *KEEP_ONE, *way)
                whole, changes = self.saves_of(arguments)
                check(arguments, whole, changes)

    def test_the_save_is_finished_and_the_run_ends(self):
        def check(arguments, whole, changes):
            # The run cannot be far: it waits for this save before it begins the next, two steps later.
            first = self.within_save(changes, 2)
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR2):
                at = self.chooser.choice(first)
                ended, folder = self.stop_at(arguments, [at], [f"signal-{number}"])
                self.assertEqual(ended.code, 128 + number, f"{at}\n{ended.output}{ended.errors}")
                self.assertIn(f"stopped by signal {number}", ended.output)
                self.check_nothing_is_lost(folder, arguments, whole)

        self.each_way(check)

    def test_one_that_comes_within_the_last_save_stops_nothing(self):
        arguments = (*PLAIN, *KEEP_ONE, *TWO_RANKS)
        whole, changes = self.saves_of(arguments)
        for who in ("0", "1"):
            last = self.within_save(changes, fault_runs.LAST_STEP, who)
            ended, folder = self.stop_at(arguments, [self.chooser.choice(last)],
                                         [f"signal-{signal.SIGTERM}"])
            self.assertEqual(ended.code, 0, ended.output + ended.errors)
            self.assertIn(f"finished at step {fault_runs.LAST_STEP}", ended.output)
            self.check_end(folder, whole)

    def test_a_second_sigterm_changes_nothing(self):
        def check(arguments, whole, changes):
            of_one = self.within_save(changes, 2, changes[0].who)
            first = self.chooser.randrange(len(of_one) - 1)
            ended, folder = self.stop_at(arguments, of_one[first:first + 2],
                                         [f"signal-{signal.SIGTERM}"] * 2)
            self.assertEqual(ended.code, 128 + signal.SIGTERM, ended.output + ended.errors)
            self.check_nothing_is_lost(folder, arguments, whole)

        self.each_way(check)

    def test_a_second_sigint_ends_the_run_and_what_was_committed_stays(self):
        arguments = (*PLAIN, *KEEP_ONE)
        whole, changes = self.saves_of(arguments)
        move = next(i for i, change in enumerate(changes) if change.kind == "rename")
        second_save = changes[move + 1:move + 3]
        ended, folder = self.stop_at(arguments, second_save, [f"signal-{signal.SIGINT}"] * 2)
        self.assertEqual(ended.code, -signal.SIGINT, ended.output + ended.errors)
        end = json.loads((folder / "disk/run/ends.jsonl").read_text())
        self.assertEqual((end["signal"], end["checkpoint"], end["saved"]), (signal.SIGINT, "step-00000002", True))
        self.assertEqual(self.check_goes_on(folder, arguments, whole, committed=2), 2)

    def test_signals_to_the_launcher(self):
        arguments = (*PLAIN, *KEEP_ONE, *TWO_RANKS)
        whole, changes = self.saves_of(arguments)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR2):
            at = self.chooser.choice(self.within_save(changes, 2))
            ended, folder = self.stop_at(arguments, [at], [f"signal-launcher-{number}"])
            self.assertEqual(ended.code, 128 + number, ended.output + ended.errors)
            self.check_nothing_is_lost(folder, arguments, whole)

    def test_sigusr1_within_a_save_asks_for_one_more(self):
        # Several ranks agree on it while the next step computes.
        for way, next_save in (("one rank", 4), ("two ranks", 5)):
            with self.subTest(way):
                arguments = (*PLAIN, *KEEP_ONE, *WAYS[way], "checkpoint.save_every_n_steps=3")
                whole, changes = self.saves_of(arguments)
                at = self.chooser.choice(self.within_save(changes, 3))
                ended, folder = self.stop_at(arguments, [at], [f"signal-{signal.SIGUSR1}"])
                self.assertEqual(ended.code, 0, ended.output + ended.errors)
                self.check_end(folder, whole)
                saved = set(map(fault_runs.step_committed_by, self.trace_of(folder))) - {0}
                self.assertEqual(saved, {3, next_save, fault_runs.LAST_STEP})


if __name__ == "__main__":
    runs.main()
