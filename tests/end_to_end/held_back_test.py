# SPDX-License-Identifier: Apache-2.0
"""What a text without validation data holds back: how much, what says so, and that a run of before there
was a limit goes on with what it held back."""

import ctypes
import re

from tests.end_to_end import runs

BYTES = 12_000_000  # a tenth is more than the limit of 2^20
NOT_BOUNDED = "the last 1200000 of 12000000 bytes"
BOUNDED = "the last 1048576 of 12000000 bytes, bounded by task.data.validation_limit"
SHORT = ("training.max_steps=2", "lr_scheduler.warmup_steps=1", "lr_scheduler.decay_steps=4", "task.sample.tokens=0")


def with_checksum(manifest):
    """A manifest's text with the checksum of its new text (docs/checkpoint_format.md)."""
    library = ctypes.CDLL("libxxhash.so.0")
    library.XXH3_64bits.restype = ctypes.c_uint64
    text = manifest[:manifest.rindex(',\n  "checksum"')].encode()
    checksum = library.XXH3_64bits(text, ctypes.c_size_t(len(text)))
    return text.decode() + f',\n  "checksum": "{checksum:016x}"\n}}\n'


class HeldBackTest(runs.RunTest):

    def setUp(self):
        super().setUp()
        self.write("text.txt", (runs.TEXT * (BYTES // len(runs.TEXT) + 1))[:BYTES])

    def said(self, output):
        """What the start says of validation."""
        return re.search(r"^validation +(.*)$", output, re.MULTILINE)[1]

    def make_older(self, exp_dir):
        """Removes the limit from config.yaml and from the checkpoints' manifests: older programs had none."""
        run = self.folder / exp_dir
        for path in [run / "config.yaml", *run.glob("checkpoints/step-*/manifest.json")]:
            kept, lines = re.subn(r'^ +"?validation_limit"?: null.*\n', "", path.read_text(), flags=re.MULTILINE)
            if path.suffix != ".json":  # a checkpoint may be older already
                self.assertEqual(lines, 1)
            path.write_text(with_checksum(kept) if path.suffix == ".json" else kept)

    def test_the_start_says_how_much_and_how_many_micro_batches(self):
        output = self.trainer("tiny.yaml", *SHORT, "validation.max_batches=3", "exp_dir=new").stdout
        self.assertEqual(self.said(output),
                         "3 micro-batches a rank of 16384 (validation.max_batches); held back: " + BOUNDED)

    def test_an_evaluation_says_how_much_of_it_is_measured(self):
        self.trainer("tiny.yaml", *SHORT, "validation.max_batches=3", "exp_dir=run")
        held_back = "samples{} of what is held back for validation: " + BOUNDED + "\n"
        bound = r" \(validation\.max_batches=3; null takes all\)"
        told = self.trainer("evaluate", "run").stderr
        self.assertRegex(told, r"(?m)^evaluating 12 of 6553\d " + held_back.format(bound))
        two_ranks = self.trainer("evaluate", "run", "launcher.processes=2").stderr
        self.assertRegex(two_ranks, r"(?m)^evaluating 24 of 6553\d " + held_back.format(bound))
        whole = self.trainer("evaluate", "run", "validation.max_batches=null", "task.data.validation_limit=1000").stderr
        self.assertRegex(whole, r"(?m)^evaluating all 6\d samples of what is held back for validation: "
                                "the last 1000 of ")

    def test_a_run_of_before_the_limit_goes_on_with_what_it_held_back(self):
        output = self.trainer("tiny.yaml", *SHORT, "task.data.validation_limit=null", "exp_dir=old").stdout
        self.assertIn(NOT_BOUNDED, self.said(output))
        own = self.trainer("evaluate", "old").stdout
        bounded = self.trainer("evaluate", "old", "task.data.validation_limit=1048576").stdout
        self.assertNotEqual(own, bounded)
        self.make_older("old")
        self.assertEqual(self.trainer("evaluate", "old").stdout, own)
        self.check_resumed("tiny.yaml", "training.max_steps=3")
        self.make_older("old")
        self.check_resumed("old/config.yaml", "training.max_steps=4")
        # What the program writes now says so.
        self.assertIn("validation_limit: null", (self.folder / "old/config.yaml").read_text())

    def check_resumed(self, config, steps):
        output = self.trainer(config, *SHORT, steps, "exp_dir=old").stdout
        self.assertTrue(self.said(output).endswith("held back: " + NOT_BOUNDED), output)
        self.assertRegex(output, r"\nresumed +after step")

    def test_another_limit_is_no_change_for_a_resume(self):
        self.trainer("tiny.yaml", *SHORT, "exp_dir=run")
        errors = self.trainer("tiny.yaml", *SHORT, "task.data.validation_limit=1000", "exp_dir=run",
                              code=2).stderr
        self.assertIn("task.data.validation_limit: was 1048576, now 1000", errors)


if __name__ == "__main__":
    runs.main()
