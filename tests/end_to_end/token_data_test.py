# SPDX-License-Identifier: Apache-2.0
"""Mixtures and documents in real runs: the same losses on any ranks, and after resumes on others."""

import random
import struct

from tests.end_to_end import runs

END_OF_TEXT = 255
DATA = """\
mixture: [
      {source: {name: nanogpt, files: [a.bin], end_of_text: 255}, share: 2},
      {source: {name: nanogpt, files: [b.bin], end_of_text: 255}, share: 1}],
    validation_fraction: 0.2"""
PLAIN = ("model.embd_pdrop=0", "model.attn_pdrop=0", "model.resid_pdrop=0", "lr_scheduler.decay_steps=20",
         "training.batch_size=2", "training.global_batch_size=24", "training.gradient_accumulation_steps=null",
         "validation.every_n_steps=5", "validation.max_batches=null")
SHARDED = ("parallel.use_fsdp=true", "activation_checkpointing.policy=unit")


def write_tokens(path, seed):
    """Documents of 0 to 40 tokens."""
    draw = random.Random(seed)
    tokens = []
    for _ in range(400):
        start, step = draw.randrange(255), draw.choice([1, 2, 3])
        tokens += [(start + step * i) % 255 for i in range(draw.randrange(41))] + [END_OF_TEXT]
    path.write_bytes(struct.pack(f"<{len(tokens)}H", *tokens))


class TokenDataTest(runs.RunTest):

    def setUp(self):
        super().setUp()
        write_tokens(self.folder / "a.bin", 1)
        write_tokens(self.folder / "b.bin", 2)
        self.write("tiny.yaml", self.config.replace("path: text.txt", DATA))

    def train(self, exp_dir, steps, processes, *options):
        self.trainer("tiny.yaml", f"exp_dir={exp_dir}", f"training.max_steps={steps}",
                     f"launcher.processes={processes}", *PLAIN, *options)

    def final_losses(self, exp_dir):
        return {(row["phase"], row["step"]): row["loss"] for row in self.rows(exp_dir)}

    def test_a_mixture_is_one_sequence_on_any_ranks_and_after_resumes(self):
        for documents in ("joined", "separated", "padded"):
            with self.subTest(documents):
                kind = f"task.data.documents={documents}"
                self.train(f"{documents}-whole", 20, 1, kind)
                for steps, processes, more in ((5, 2, SHARDED), (10, 3, ()), (15, 4, SHARDED), (20, 1, ())):
                    self.train(f"{documents}-parts", steps, processes, kind, *more)
                expected = self.final_losses(f"{documents}-whole")
                found = self.final_losses(f"{documents}-parts")
                self.assertEqual(found.keys(), expected.keys())
                self.assertLess(expected["train", 20], expected["train", 1])
                for key, loss in expected.items():
                    self.assertAlmostEqual(found[key], loss, delta=1e-4, msg=str(key))

    def test_broken_validation_data_shows_before_the_first_step(self):
        (self.folder / "beyond.bin").write_bytes(struct.pack("<500H", *[300] * 500))
        told = self.trainer("tiny.yaml", "exp_dir=run", "validation.every_n_steps=null",
                            "+task.data.validation_source={name: nanogpt, files: [beyond.bin], end_of_text: null}", code=1)
        self.assertIn("beyond.bin", told.stderr)
        self.assertIn("0 steps were finished", told.stderr)
        self.assertNotIn("train ", told.stdout)
        # Nothing looks at it where no validation follows.
        self.trainer("tiny.yaml", "exp_dir=none", "training.max_steps=2", "validation.every_n_steps=null",
                     "validation.at_end=false",
                     "+task.data.validation_source={name: nanogpt, files: [beyond.bin], end_of_text: null}")

    def test_broken_samples_are_left_out_up_to_a_limit(self):
        data = bytearray((self.folder / "a.bin").read_bytes())
        for token in (20, 21, 900):  # Two samples of 16 tokens.
            data[2 * token:2 * token + 2] = struct.pack("<H", 256 + token)
        (self.folder / "a.bin").write_bytes(data)
        self.write("one.yaml", self.config.replace(
            "path: text.txt", "source: {name: nanogpt, files: [a.bin]}, validation_fraction: 0"))
        epoch = ("training.max_steps=null", "training.max_epochs=1", *PLAIN)

        first = self.trainer("one.yaml", "exp_dir=none", *epoch, code=1)
        self.assertRegex(first.stderr, r"a\.bin', token (20|900) is (276|1156), but the model knows only tokens below 256")

        few = self.trainer("one.yaml", "exp_dir=few", "task.data.loader.max_broken=1", *epoch, code=1)
        self.assertIn("broken samples: 2, while max_broken allows 1", few.stderr)
        self.assertRegex(few.stderr, r"2 of '[^']*a\.bin' \(a token beyond the vocabulary\)")

        for processes in (1, 2):
            left_out = self.trainer("one.yaml", f"exp_dir=out{processes}", "task.data.loader.max_broken=2",
                                    f"launcher.processes={processes}", *epoch)
            self.assertRegex(left_out.stdout,
                             r"left out +broken samples: 2 of '[^']*a\.bin' \(a token beyond the vocabulary\)")
        self.assertIn("warning: a broken sample is left out", left_out.stdout + "".join(
            (self.folder / f"out2/logs/rank_{rank}.log").read_text() for rank in (0, 1)))
        for (key, loss), (other_key, other) in zip(self.final_losses("out1").items(),
                                                   self.final_losses("out2").items(), strict=True):
            self.assertEqual(key, other_key)
            self.assertAlmostEqual(loss, other, delta=1e-4)

    def test_negative_tokens_are_named_and_refused(self):
        """Megatron's types are signed; what another program wrote as uint16 is negative in int16."""
        (self.folder / "set.bin").write_bytes(struct.pack("<64h", *range(40), -7, *range(21), -9, 3))
        (self.folder / "set.idx").write_bytes(
            b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 3, 1, 2) + struct.pack("<i3q", 64, 0, 0, 1))
        for options in ([], ["--tokenizer=bytes"]):
            inspected = self.trainer("data", "inspect", "set.bin", *options, code=1).stdout
            self.assertIn("broken: 2 of the tokens are negative; the first: 'set.bin', token 40 is -7",
                          inspected)
        self.write("one.yaml", self.config.replace(
            "path: text.txt", "source: {name: megatron, files: [set.idx]}, validation_fraction: 0"))
        epoch = ("training.max_steps=null", "training.max_epochs=1", *PLAIN)
        refused = self.trainer("one.yaml", "exp_dir=run", *epoch, code=1).stderr
        self.assertRegex(refused, r"set\.bin', token (40 is -7|62 is -9), and no token is negative")

    def test_files_of_a_mixture_may_move(self):
        self.train("run", 5, 1)
        (self.folder / "a.bin").rename(self.folder / "moved.bin")
        told = self.trainer("run/config.yaml", "exp_dir=run", "task.data.mixture[0].source.files=[moved.bin]",
                            "training.max_steps=6").stdout
        self.assertIn("changed since the last start: task.data.mixture[0].source.files: was [a.bin], now [moved.bin]",
                      told)

    def test_training_goes_on_with_more_data_on_request(self):
        self.train("run", 5, 1)
        write_tokens(self.folder / "c.bin", 3)
        more = ("task.data.mixture=[{source: {name: nanogpt, files: [a.bin], end_of_text: 255}},"
                "{source: {name: nanogpt, files: [b.bin], end_of_text: 255}},"
                "{source: {name: nanogpt, files: [c.bin], end_of_text: 255}}]")
        refused = self.trainer("run/config.yaml", "exp_dir=run", "training.max_steps=7", more, code=2)
        self.assertIn("checkpoint.data_may_change=true", refused.stderr)
        told = self.trainer("run/config.yaml", "exp_dir=run", "training.max_steps=7", more,
                            "checkpoint.data_may_change=true").stdout
        self.assertRegex(told, r"data: another one from step 5 on \(checkpoint.data_may_change\), after 120 samples of "
                         r"the earlier; epoch \d+ begins with its \d+ samples in the order of seed 0")
        self.assertIn("changed since the last start: task.data.mixture[2]: was (absent)", told)
        self.assertEqual(self.rows("run")[-1]["step"], 7)
        # Again from the new one; nothing is said of the data.
        again = self.trainer("run/config.yaml", "exp_dir=run", "training.max_steps=8").stdout
        self.assertNotIn("another one", again)
        # `++` lets the fields pass, and not the data.
        self.train("forced", 5, 1)
        refused = self.trainer("forced/config.yaml", "exp_dir=forced", "training.max_steps=7", f"++{more}", code=2)
        self.assertIn("checkpoint.data_may_change=true", refused.stderr)

    def test_a_new_run_goes_on_with_an_old_optimizer_and_other_data(self):
        self.train("run", 5, 1)
        write_tokens(self.folder / "a.bin", 4)
        new = ["tiny.yaml", "exp_dir=new", *PLAIN, "training.max_steps=7", "checkpoint.load_from=run",
               "checkpoint.load_model_only=false"]
        refused = self.trainer(*new, code=2).stderr
        self.assertIn("take its weights alone (checkpoint.load_model_only=true)", refused)
        self.assertIn("from step 5 on", self.trainer(*new, "checkpoint.data_may_change=true").stdout)
        self.assertEqual([row["step"] for row in self.rows("new") if row["phase"] == "train"], [6, 7])

    def test_a_resume_must_cut_documents_as_before(self):
        self.train("run", 5, 1)
        refused = self.trainer("tiny.yaml", "exp_dir=run", "task.data.documents=padded", *PLAIN, code=2)
        self.assertIn("task.data.documents", refused.stderr)


if __name__ == "__main__":
    runs.main()
