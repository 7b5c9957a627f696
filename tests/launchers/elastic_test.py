# SPDX-License-Identifier: Apache-2.0
"""Nodes that come to a launch late, return, leave or do not fit: what it costs the run."""

import dataclasses
import itertools
import json
import signal
import time

from tests import long
from tests.end_to_end import runs
from tests.launchers.nodes import NodesTest

FOLDERS = {"exp_dir": ["exp_dir=runs/x"], "exp_name": ["exp_name=x"], "none": []}
BATCHES = {"batch": ["training.gradient_accumulation_steps=null"],
           "global batch": ["training.gradient_accumulation_steps=null", "training.batch_size=2",
                            "training.global_batch_size=8"]}
LONG_RUN = ["training.max_steps=1000000", "checkpoint.save_every_n_steps=20", "validation.every_n_steps=null"]
STOPPED = 128 + signal.SIGTERM


@dataclasses.dataclass
class Row:
    """What a case has come to."""
    codes: tuple
    lost: int
    seconds: float


class ElasticTest(NodesTest):

    def folder_of_run(self):
        below = self.folder / "runs"
        starts, = [*below.glob("*/starts.jsonl"), *below.glob("*/run_*/starts.jsonl")]
        return starts.parent

    def wait_for_start(self, count, ranks):
        """Seconds until the run has begun for the n-th time, on so many ranks, and has finished a step."""
        begin = time.monotonic()
        while True:
            self.assertLess(time.monotonic(), begin + runs.TIMEOUT_SECONDS, "it does not start again")
            starts = self.starts(self.folder_of_run())
            if len(starts) >= count:
                self.assertEqual(starts[count - 1]["world_size"], ranks)
                try:
                    rows = self.rows(self.folder_of_run())
                except json.JSONDecodeError:  # a row that is being written
                    rows = []
                if rows and rows[-1]["step"] > starts[count - 1]["step"]:
                    return time.monotonic() - begin
            time.sleep(0.05)

    def steps_lost(self):
        starts = self.starts(self.folder_of_run())
        ends = self.ends(self.folder_of_run())
        return sum(end["step"] - start["step"] for end, start in zip(ends, starts[1:], strict=False))

    def end(self, first, *others):
        """A signal to the node that serves the others ends the run on all of them."""
        first.process.send_signal(signal.SIGTERM)
        codes = tuple(node.finish() for node in (first, *others))
        self.assertEqual("".join(node.text for node in (first, *others)).count("next: "), 1, first.text)
        return codes

    def late(self, words, fits):
        first = self.node(0, *self.elastic(), *words)
        first.wait_for("step 3/")
        second = self.node(1, *self.elastic(), *words)
        if not fits:
            return self.refusal(first, second, "make it 8")
        seconds = first.wait_for("node host-1 joins: the ranks save, and start again on 2 nodes")
        seconds += self.wait_for_start(2, ranks=2)
        codes = self.end(first, second)
        end = self.ends(self.folder_of_run())[0]
        self.assertEqual(end["reason"], "node host-1 joins")
        self.assertNotIn("signal", end)
        self.assertRegex(first.text, r"stopped at step \d+ .*: node host-1 joins")
        self.assertEqual(first.text.count("stopped by signal"), 1, first.text)  # in the end
        return Row(codes, self.steps_lost(), seconds)

    def refusal(self, first, second, why):
        begin = time.monotonic()
        code = second.finish()
        seconds = time.monotonic() - begin
        self.assertIn(why, second.text)
        first.wait_for("node host-1 is refused: ")
        first.wait_for("step ", start=len(first.text))
        self.assertEqual(len(self.starts(self.folder_of_run())), 1)  # it was not stopped
        codes = (*self.end(first), code)
        self.assertEqual(code, 2, second.text)
        return Row(codes, self.steps_lost(), seconds)

    def refused(self, words, _):
        first = self.node(0, *self.elastic(), *words)
        first.wait_for("step 3/")
        return self.refusal(first, self.node(1, *self.elastic(), *words, "optimizer.lr=0.5"), "optimizer.lr: 0.5 here")

    def two_nodes(self, words):
        second = self.node(1, *self.elastic(), "--max-restarts=1", *words)
        second.wait_for("waiting for the first node")  # so that the first does not begin without it
        first = self.node(0, *self.elastic(), "--max-restarts=1", *words)
        first.wait_for("step 25/")  # A checkpoint holds how many samples a step has.
        self.assertEqual(self.starts(self.folder_of_run())[-1]["world_size"], 2)
        return first, second

    def leaving(self, words, _):
        first, second = self.two_nodes(words)
        count = len(self.starts(self.folder_of_run()))
        second.process.send_signal(signal.SIGTERM)
        seconds = first.wait_for("node host-1 leaves: the ranks start again on 1 node")
        seconds += self.wait_for_start(count + 1, ranks=1)
        code = second.finish()
        self.assertNotIn("next: ", first.text + second.text)  # the launch goes on by itself
        codes = (*self.end(first), code)
        self.assertEqual(self.ends(self.folder_of_run())[count - 1]["reason"], "node host-1 leaves")
        return Row(codes, self.steps_lost(), seconds)

    def returning(self, words, _):
        first, second = self.two_nodes(words)
        count = len(self.starts(self.folder_of_run()))
        second.kill()
        seconds = first.wait_for("the ranks start again in 1 s")
        seconds += self.wait_for_start(count + 1, ranks=1)
        self.assertRegex(first.text, r"node 1 \(host-1\) gave no sign of life|rank 1")
        third = self.node(1, *self.elastic(), "--max-restarts=1", *words)
        seconds += self.wait_for_start(count + 2, ranks=2)
        return Row(self.end(first, third), self.steps_lost(), seconds)

    def test_table(self):
        cases = list(itertools.product(["late", "refused", "leaving", "returning"], FOLDERS, BATCHES))
        sample = [("late", "exp_dir", "global batch"), ("late", "exp_dir", "batch"), ("leaving", "exp_dir", "batch")]
        chosen = cases if long.is_long() else sample
        long.tell_sample(len(chosen), len(cases), "elastic cases")
        print("| nodes | folder | samples | exit codes | steps lost | seconds |\n|---|---|---|---|---|---|", flush=True)
        for case, folder, batch in chosen:
            with self.subTest(case=case, folder=folder, batch=batch):
                self.doCleanups()
                self.setUp()
                # A batch of each rank makes other steps on two ranks than on one.
                fits = batch == "global batch"
                words = ["tiny.yaml", *FOLDERS[folder], *BATCHES[batch], *LONG_RUN]
                row = getattr(self, case)(words, fits)
                folder = self.folder_of_run()
                self.assertEqual([end["start"] for end in self.ends(folder)],
                                 list(range(1, len(self.starts(folder)) + 1)))
                print(f"| {case} | {folder} | {batch} | {row.codes} | {row.lost} | {row.seconds:.1f} |", flush=True)
                expected = {"late": (STOPPED, STOPPED if fits else 2), "refused": (STOPPED, 2)}
                self.assertEqual(row.codes, expected.get(case, (STOPPED, STOPPED)))
                # A node that was lost costs what came after the newest checkpoint.
                self.assertLessEqual(row.lost, 20 if case == "returning" else 0)


if __name__ == "__main__":
    runs.main()
