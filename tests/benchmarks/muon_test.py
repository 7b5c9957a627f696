# SPDX-License-Identifier: Apache-2.0
"""benchmarks/muon on the licences that every Debian has: Muon comes to a fixed loss in fewer steps than AdamW at each of
three learning rates.

By default a few steps alone, which show the table; with --config=long 400 steps.
"""

import pathlib
import subprocess
import sys

from tests.end_to_end import runs
from tests.long import is_long, tell_sample

MUON = pathlib.Path("benchmarks/muon").resolve()
STEPS, EVERY, LOSS = 400, 20, 2.2
SAMPLE_STEPS = 20
RATES = ("0.0005", "0.001", "0.002")


def corpus():
    sources = sorted({path.resolve() for path in pathlib.Path("/usr/share/common-licenses").iterdir()})
    return b"".join(source.read_bytes() for source in sources)


class MuonTest(runs.RunTest):

    def compare(self, steps, every, losses, rates):
        """The exit code, and the cells of the table's rows below its head."""
        (self.folder / "corpus.txt").write_bytes(corpus())
        process = subprocess.run(
            [sys.executable, MUON, "corpus.txt", "--trainer", runs.TRAINER, "--seeds", "0", "--steps", str(steps),
             "--every", str(every), "--batches", "10", "--losses", *losses, "--lrs", *rates],
            cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)  # fmt: skip
        print(process.stdout, flush=True)
        self.assertIn(process.returncode, (0, 1), process.stdout + process.stderr)
        rows = [line.strip("| ").split(" | ") for line in process.stdout.splitlines() if line.startswith("| ")]
        self.assertEqual([row[0] for row in rows], ["optimizer", *["AdamW"] * len(rates), "Muon"], process.stderr)
        return process.returncode, rows[1:]

    def test_it_tells_who_comes_to_a_loss_first(self):
        # Every model has the first loss at the first validation, and none the second one.
        code, rows = self.compare(SAMPLE_STEPS, SAMPLE_STEPS // 2, ["100", "0.001"], RATES[:1])
        self.assertEqual(code, 1)
        for row in rows:
            self.assertEqual(row[2:4], [str(SAMPLE_STEPS // 2), "–"])
            self.assertLess(float(row[4]), 5.6)  # ln 256 is 5.5: it learns

    def test_muon_needs_fewer_steps(self):
        tell_sample(STEPS if is_long() else 0, STEPS, "steps of four models")
        if not is_long():
            return
        code, rows = self.compare(STEPS, EVERY, [str(LOSS)], RATES)
        self.assertEqual(code, 0)
        steps = [row[2] for row in rows]
        self.assertNotEqual(steps[-1], "–")
        self.assertTrue(all(other == "–" or int(steps[-1]) < int(other) for other in steps[:-1]), steps)


if __name__ == "__main__":
    runs.main()
