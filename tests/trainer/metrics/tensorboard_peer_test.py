# SPDX-License-Identifier: Apache-2.0
"""TensorBoard's own reader finds in our event files exactly what metrics.jsonl holds."""

import json
import math
import os
import struct
import subprocess
import sys
import tempfile
import unittest

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

WRITE = os.path.abspath(sys.argv.pop())


def single(value):
    return struct.unpack("f", struct.pack("f", value))[0]


def key(value):
    return "nan" if math.isnan(value) else value


class TensorboardPeer(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        subprocess.run([WRITE, folder.name], check=True)
        with open(os.path.join(folder.name, "metrics.jsonl"), encoding="utf-8") as rows:
            # A strict reader: the words NaN and Infinity are no JSON.
            self.rows = [json.loads(row, parse_constant=self.fail) for row in rows]
        self.events = EventAccumulator(folder.name, size_guidance={"scalars": 0})
        self.events.Reload()

    def scalars_of_rows(self):
        """tag -> [(step, value)], from metrics.jsonl."""
        scalars = {}
        for row in self.rows:
            for name in ("loss", "lr", "grad_norm", "skipped_steps"):
                value = row[name]
                if value is None:
                    value = float(row["nonfinite"][name])
                scalars.setdefault(f"{row['phase']}/{name}", []).append(
                    (row["step"], key(single(value))))
        return scalars

    def test_tags_steps_and_values_agree(self):
        expected = self.scalars_of_rows()
        self.assertEqual(set(self.events.Tags()["scalars"]), set(expected))
        for tag, values in expected.items():
            got = [(event.step, key(event.value)) for event in self.events.Scalars(tag)]
            self.assertEqual(got, values, tag)
            print(f"{tag}: {len(got)} values equal, the last {got[-1]}")

    def test_the_resumed_run_is_one_run(self):
        steps = [row["step"] for row in self.rows if row["phase"] == "train"]
        self.assertEqual(steps, list(range(10, 401, 10)))
        got = [event.step for event in self.events.Scalars("train/loss")]
        self.assertEqual(got, steps)

    def test_times_agree(self):
        rows = [row for row in self.rows if row["phase"] == "validate"]
        events = self.events.Scalars("validate/loss")
        self.assertEqual(len(rows), len(events))
        for row, event in zip(rows, events):
            self.assertAlmostEqual(row["time"], event.wall_time, delta=1.0)


if __name__ == "__main__":
    unittest.main()
