# SPDX-License-Identifier: Apache-2.0
"""docs/metrics.md lists the keys of metrics.jsonl, each with the phases that have it."""

import pathlib
import re
import sys

from tests.end_to_end import runs

PAGE = pathlib.Path(sys.argv[2]).read_text(encoding="utf-8")
PHASES = {"train": {"train"}, "validate": {"validate"}, "both": {"train", "validate"}}

DIVERGES = ("training.max_steps=4", "optimizer.lr=1e28", "training.stop_on_nonfinite_loss=false")


def documented():
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \|", PAGE, re.MULTILINE)
    return {key: PHASES[phase] for key, phase in rows}


class MetricsTest(runs.RunTest):

    def test_the_page_lists_what_runs_write(self):
        # With a loss scale; and with values that are no numbers, in both phases.
        self.trainer("tiny.yaml", "exp_dir=half", "training.max_steps=2", "mixed_precision=fp16")
        self.trainer("tiny.yaml", "exp_dir=diverged", *DIVERGES)
        self.trainer("tiny.yaml", "exp_dir=guarded", "training.max_steps=3", "optimizer.lr=1e28",
                     "guards.on_nonfinite=skip")
        written = {}
        for row in self.rows("half") + self.rows("diverged") + self.rows("guarded"):
            for key in row:
                written.setdefault(key, set()).add(row["phase"])
        self.assertEqual(written, documented())

    def test_a_diverged_run_ends_as_any_other_and_shows_nan_without_a_sign(self):
        for case in ([], ["launcher.processes=2", "parallel=fsdp"]):
            with self.subTest(case):
                folder = f"exp_dir=diverged_{len(case)}"
                output = self.trainer("tiny.yaml", folder, *DIVERGES, *case).stdout
                self.assertIn("\nno sample: the probabilities of the next token are not finite\n", output)
                self.assertIn("loss nan", output)
                self.assertNotIn("-nan", output)
        for command in (["checkpoint", "list"], ["evaluate"]):
            with self.subTest(command):
                output = self.trainer(*command, "diverged_0").stdout
                self.assertRegex(output, r"loss +nan")
                self.assertNotIn("-nan", output)


if __name__ == "__main__":
    runs.main()
