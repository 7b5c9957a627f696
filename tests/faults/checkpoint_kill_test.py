# SPDX-License-Identifier: Apache-2.0
"""kill -9 at every change of a file that a run makes: each time the same command goes on from what was
committed, to the very losses and weights of a run that nothing interrupts.

The points are found, not listed: an uninterrupted run is traced. A point is before a change, or in the
middle of a write, and is named by what is changed. Of many writes to one file, one after the other,
there are the first, one from the middle and the last. By default some
names of each scenario are hit once, by chance; with --config=long, each, each time that it comes up.
Ends with the table of docs/checkpoint_faults.md.
"""

import collections
import dataclasses
import itertools
import shutil
import signal

from tests.end_to_end import runs
from tests.faults import fault_runs
from tests.faults.fault_runs import ASYNC, KEEP_ONE, KEEP_TWO, NO_EXCHANGE, PLAIN, TWO_RANKS, Rule
from tests.long import is_long, tell_sample

PHASES = FOLDER, SAVE, COMMIT, LATEST, REPLACE, PRUNE = (
    "the run's folder and logs", "save", "commit", "`latest`", "replace", "prune")
MOVE_IN = "rename run/checkpoints/step.tmp run/checkpoints/step"


@dataclasses.dataclass
class Scenario:
    """A command, and the disk that it begins with."""
    name: str
    arguments: tuple
    whole: object  # the folder of the run that it must end as
    template: object = None
    committed: int = 0  # step, there already
    rules: tuple = ()  # the first one that fits counts
    only_resume: bool = False  # what comes after is another scenario's


def thinned(operations):
    """Three of each row of like operations: the first, one from the middle, the last."""
    for _, group in itertools.groupby(operations, key=lambda operation: (operation.who, operation.name)):
        row = list(group)
        yield from (row if len(row) <= 3 else [row[0], row[len(row) // 2], row[-1]])


def points_of(operations):
    """Where to kill: (who, name, occurrence, moment)."""
    for operation in thinned(operations):
        place = (operation.who, operation.name, operation.occurrence)
        yield (*place, "before")
        if operation.kind in ("write", "pwrite"):
            yield (*place, "half")


def until_first_save(operations):
    return itertools.takewhile(
        lambda operation: operation.name != "mkdir run/checkpoints/step.tmp", operations)


def one_of_each(points, chooser):
    """One occurrence of every name and moment, in an order by chance."""
    by_name = collections.defaultdict(list)
    for who, name, occurrence, moment in points:
        by_name[who, name, moment].append((who, name, occurrence, moment))
    chosen = [chooser.choice(found) for found in by_name.values()]
    chooser.shuffle(chosen)
    return sorted(chosen, key=lambda point: not is_rare(point[1]))


def is_rare(name):
    """Whether it belongs to a scenario alone: to be hit before others of it."""
    return any(part in name for part in ("exchange", ".replaced", ".deleted", "unlink"))


def phase_of(name):
    """Which part of a checkpoint's life a change belongs to: a row of the table."""
    if "run/checkpoints" not in name:
        return FOLDER
    if ".deleted" in name:
        return PRUNE
    if ".replaced" in name or name.startswith("exchange"):
        return REPLACE
    if "latest" in name:
        return LATEST
    if "manifest" in name or name == MOVE_IN or name.startswith("fsync run/checkpoints/step.tmp "):
        return COMMIT
    return COMMIT if name in ("fsync run/checkpoints", "fsync run/checkpoints/step.tmp") else SAVE


class CheckpointKillTest(fault_runs.FaultTest):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.table = collections.Counter()

    @classmethod
    def tearDownClass(cls):
        rows = collections.defaultdict(collections.Counter)
        for (scenario, phase, _), count in cls.table.items():
            rows[scenario][phase] += count
        fault_runs.print_table(("scenario", *PHASES, "all"),
                               [(scenario, *(row[phase] or "" for phase in PHASES), row.total())
                                for scenario, row in rows.items()])
        newer = sum(count for (_, _, is_newer), count in cls.table.items() if is_newer)
        print(f"{sum(cls.table.values())} points, {newer} of them gone on from a newer step than was "
              "known to be committed")

    def kill_at(self, scenario, point, action="kill"):
        """Kills a run at a point, and has it go on."""
        who, name, occurrence, moment = point
        folder = self.disk(scenario.template)
        ended = self.run_on(folder, scenario.arguments,
                            [Rule(moment, action, who, name, str(occurrence)), *scenario.rules])
        # A launcher outlives its rank, and says what has happened.
        told = 1 if who != "main" and action == "kill" else -signal.SIGKILL
        self.assertEqual(ended.code, told, ended.output + ended.errors)
        rows = self.losses_of(folder)
        self.assertEqual(rows, self.losses_of(scenario.whole)[:len(rows)])
        committed = self.committed(folder, scenario.committed)
        resumed = self.check_goes_on(folder, scenario.arguments, scenario.whole, committed)
        with self.lock:
            self.table[scenario.name, phase_of(name), resumed > committed] += 1
        shutil.rmtree(folder)

    def kill_everywhere(self, scenario, sample=None):
        """At each point of a scenario, or at one of each name, or some of these."""
        traced = self.disk(scenario.template)
        ended = self.run_on(traced, scenario.arguments, scenario.rules)
        self.assertEqual(ended.code, 0, ended.errors)
        self.check_end(traced, scenario.whole)
        operations = self.trace_of(traced)
        if scenario.only_resume:
            operations = until_first_save(operations)
        points = list(points_of(operations))
        chosen = points if is_long() else one_of_each(points, self.chooser)[:sample]
        tell_sample(len(chosen), len(points), f"points of {scenario.name!r}")
        self.at_once(lambda point: self.kill_at(scenario, point), chosen)

    def of_new_run(self, name, *arguments):
        arguments = (*PLAIN, *KEEP_ONE, *arguments)
        return Scenario(name, arguments, self.whole(arguments))

    def damaged(self):
        """A run whose newest checkpoint is damaged: going on replaces it."""
        arguments = (*PLAIN, *KEEP_TWO)
        whole = self.whole(arguments)
        folder = self.with_damage(whole)
        return Scenario("replace a damaged one", arguments, whole, folder, fault_runs.LAST_STEP - 2)

    def left_by(self, scenario, name, occurrence):
        """What a kill has left: going on begins with that."""
        folder = self.disk(scenario.template)
        ended = self.run_on(folder, scenario.arguments,
                            [Rule("before", "kill", "main", name, str(occurrence)), *scenario.rules])
        self.assertEqual(ended.code, -signal.SIGKILL, ended.output + ended.errors)
        self.assertTrue([name for name in self.checkpoints(folder) if fault_runs.LEFTOVER.search(name)])
        return dataclasses.replace(scenario, template=folder, rules=(), only_resume=True,
                                   committed=self.committed(folder, scenario.committed))

    def test_one_rank(self):
        self.kill_everywhere(self.of_new_run("one rank"), sample=10)

    def test_two_ranks(self):
        self.kill_everywhere(self.of_new_run("two ranks", *TWO_RANKS), sample=6)

    def test_in_the_background(self):
        self.kill_everywhere(self.of_new_run("one rank, async", *ASYNC), sample=5)

    def test_two_ranks_in_the_background(self):
        self.kill_everywhere(self.of_new_run("two ranks, async", *TWO_RANKS, *ASYNC), sample=5)

    def test_a_replacement(self):
        self.kill_everywhere(self.damaged(), sample=4)

    def test_a_replacement_where_folders_cannot_be_exchanged(self):
        scenario = dataclasses.replace(self.damaged(), rules=(NO_EXCHANGE,),
                                       name="replace without exchange")
        self.kill_everywhere(scenario, sample=4)

    def test_the_way_back(self):
        """Kills while a run that was killed before is brought into order."""
        new = self.of_new_run("one rank")
        replacing = dataclasses.replace(self.damaged(), rules=(NO_EXCHANGE,))
        for name, scenario, place, occurrence in (
            ("resume after a save", new, "write run/checkpoints/step.tmp/manifest.json", 2),
            ("resume after a prune", new, "unlink run/checkpoints/step.deleted/optimizer.safetensors", 1),
            ("resume after a replacement", replacing, MOVE_IN, 1),
        ):  # fmt: skip
            left = dataclasses.replace(self.left_by(scenario, place, occurrence), name=name)
            self.kill_everywhere(left, sample=4)

    def test_the_launcher_and_all(self):
        count = 60 if is_long() else 2
        for way, arguments in (("two ranks", TWO_RANKS), ("two ranks, async", (*TWO_RANKS, *ASYNC))):
            for action in ("kill-launcher", "kill-all"):
                scenario = self.of_new_run(f"{way}: {action}", *arguments)
                points = [point for point in points_of(self.trace_of(scenario.whole)) if point[0] != "main"]
                tell_sample(count, len(points), f"points of {scenario.name!r}")
                self.at_once(lambda point: self.kill_at(scenario, point, action),
                             self.chooser.sample(points, count))


if __name__ == "__main__":
    runs.main()
