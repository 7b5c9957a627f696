# SPDX-License-Identifier: Apache-2.0
"""configs/: the tiny variants of the examples learn, and the examples themselves resolve."""

import sys

from tests.end_to_end import runs, text_pairs

CONFIGS = runs.pathlib.Path(sys.argv[2]).resolve().parent


class ExamplesTest(runs.RunTest):

    def train(self, config, *options):
        """The training losses and the last validation loss of an example's first steps."""
        self.trainer(str(CONFIGS / config), "exp_dir=run", "checkpoint.save_every_n_steps=null",
                     "logging.every_n_steps=1", *options)
        rows = self.rows("run")
        return ([row["loss"] for row in rows if row["phase"] == "train"],
                [row["loss"] for row in rows if row["phase"] == "validate"][-1])

    def test_t5_learns_pairs_under_fsdp(self):
        text_pairs.write_pairs(self.folder / "pairs.jsonl", 800)
        losses, validation = self.train("t5_fsdp_tiny.yaml", "task.data.pairs.files=[pairs.jsonl]",
                                        "training.max_steps=40", "validation.every_n_steps=40")
        self.assertGreater(losses[0], 5)
        self.assertLess(losses[-1], 3.5)
        self.assertLess(validation, 3.5)

    def test_t5_learns_to_fill_in_spans(self):
        losses, _ = self.train("t5_span_corruption.yaml", "training.max_steps=30",
                               "validation.every_n_steps=30", "validation.max_batches=4")
        self.assertGreater(losses[0], 5)
        self.assertLess(losses[-1], 4.5)

    def test_gpt2_learns_from_files_of_tokens(self):
        self.write("corpus.txt", runs.TEXT * 4)
        self.trainer("tokenize", "corpus.txt", "--tokenizer=characters", "--output=tokens", "--document=line",
                     "--val-fraction=0.1")
        losses, validation = self.train("gpt2_bin_tiny.yaml", "training.max_steps=40",
                                        "validation.every_n_steps=40", "task.sample.tokens=0")
        self.assertGreater(losses[0], 5)
        self.assertLess(losses[-1], 3.5)
        self.assertLess(validation, 3.5)

    def test_gpt2_learns_to_answer(self):
        text_pairs.write_pairs(self.folder / "pairs.jsonl", 800, "instruction", "response")
        losses, validation = self.train("instruction_tuning_tiny.yaml", "task.data.pairs.files=[pairs.jsonl]",
                                        "training.max_steps=40", "validation.every_n_steps=40")
        self.assertGreater(losses[0], 5)
        self.assertLess(losses[-1], 3.5)
        self.assertLess(validation, 3.5)

    def test_the_examples_resolve(self):
        pairs = ("task.data.tokenizer=tok", "task.data.pairs.files=[pairs.jsonl]")
        for config, expected, options in (("t5_fsdp.yaml", "d_model: 768", pairs),
                                          ("gpt2_bin.yaml", "n_layer: 12", ()),
                                          ("instruction_tuning.yaml", "n_layer: 12", pairs)):
            self.assertIn(expected, self.trainer("config", "print", str(CONFIGS / config), *options).stdout)


if __name__ == "__main__":
    runs.main()
