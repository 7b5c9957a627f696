# SPDX-License-Identifier: Apache-2.0
"""configs/: the quickstart trains to a loss well below its start, and every config resolves."""

import sys

from tests.end_to_end import runs

QUICKSTART, LARGE = (runs.pathlib.Path(argument).resolve() for argument in sys.argv[2:4])


class QuickstartTest(runs.RunTest):

    def test_the_quickstart_learns(self):
        output = self.trainer(str(QUICKSTART), "exp_dir=run", "training.max_steps=60",
                              "validation.every_n_steps=30", "validation.max_batches=8").stdout
        rows = self.rows("run")
        train = [row["loss"] for row in rows if row["phase"] == "train"]
        validate = [row["loss"] for row in rows if row["phase"] == "validate"]
        self.assertGreater(train[0], 5.4)  # ln 256 is 5.55
        self.assertLess(train[-1], 2.9)
        self.assertLess(validate[-1], 3.2)
        self.assertIn("sample:\nThe ", output)

    def test_every_config_resolves(self):
        self.trainer("config", "print", str(QUICKSTART))
        text = self.trainer("config", "print", str(LARGE), "task.data.path=text.txt").stdout
        self.assertIn("n_layer: 12", text)


if __name__ == "__main__":
    runs.main()
