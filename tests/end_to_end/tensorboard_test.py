# SPDX-License-Identifier: Apache-2.0
"""TensorBoard's own reader returns the values of metrics.jsonl, across a resume too."""

import numpy
from tensorboard.backend.event_processing import event_accumulator

from tests.end_to_end import runs

NOT_SCALARS = {"step", "phase", "epoch", "samples", "tokens", "time", "elapsed", "nonfinite"}


class TensorBoardTest(runs.RunTest):

    def compare(self, exp_dir):
        reader = event_accumulator.EventAccumulator(str(self.folder / exp_dir / "logs"))
        reader.Reload()
        expected = {}
        for row in self.rows(exp_dir):
            for name, value in row.items():
                if name not in NOT_SCALARS:
                    tag = f"{row['phase']}/{name}"
                    expected.setdefault(tag, []).append((row["step"], numpy.float32(value)))
        self.assertEqual(set(reader.Tags()["scalars"]), set(expected))
        values = 0
        for tag, points in expected.items():
            got = [(event.step, numpy.float32(event.value)) for event in reader.Scalars(tag)]
            self.assertEqual(got, points, tag)
            values += len(points)
        print(f"{exp_dir}: {values} values of {len(expected)} tags equal")
        self.assertGreater(values, 200)

    def test_a_run(self):
        self.trainer("tiny.yaml", "exp_dir=run")
        self.compare("run")

    def test_a_resumed_run(self):
        self.trainer("tiny.yaml", "exp_dir=run", "training.max_steps=18",
                     "lr_scheduler.decay_steps=40", "checkpoint.save_every_n_steps=7")
        checkpoints = self.folder / "run/checkpoints"
        (checkpoints / "latest").write_text("step-00000014\n")
        runs.shutil.rmtree(checkpoints / "step-00000018")  # as if it had died before the last save
        self.trainer("tiny.yaml", "exp_dir=run", "lr_scheduler.decay_steps=40")
        self.compare("run")


if __name__ == "__main__":
    runs.main()
