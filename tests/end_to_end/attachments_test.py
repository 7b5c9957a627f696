# SPDX-License-Identifier: Apache-2.0
"""A tokenizer goes with its model: through checkpoints, a resume, an export and an import, byte for byte."""

import os
import shutil
import subprocess

from tests.end_to_end import byte_bpe, runs

STEPS = ["training.max_steps=5", "lr_scheduler.decay_steps=40"]
VOCABULARY = byte_bpe.END + 1
# What goes along: the token that ends a text by the tokenizer.
GENERATION = {"generation_config.json": b'{\n  "eos_token_id": 259\n}\n'}


class AttachmentsTest(runs.RunTest):

    def setUp(self):
        super().setUp()
        self.write("tok/tokenizer.json", byte_bpe.tokenizer_json())
        self.write("tok/tokenizer_config.json", '{"eos_token": "<|endoftext|>"}\r\n')
        # A token for each byte: they are the tokenizer's first.
        (self.folder / "tokens.bin").write_bytes(b"".join(bytes([byte, 0]) for byte in runs.TEXT.encode()))
        self.write("tokens.yaml", self.config.replace(
            "path: text.txt",
            "source: {name: nanogpt, files: [tokens.bin], end_of_text: null}, tokenizer: tok").replace(
            "vocab_size: 256", f"vocab_size: {VOCABULARY}").replace(
            "save_every_n_steps: 5", "save_every_n_steps: 5, async: true, sha256: true"))

    def train(self, *arguments, **options):
        return self.trainer("tokens.yaml", "exp_dir=run", *STEPS, *arguments, **options)

    def checkpoint(self, step):
        return self.folder / f"run/checkpoints/step-{step:08}"

    def contents(self, folder):
        """The bytes of each file of a folder that is none of a model's."""
        return {path.name: path.read_bytes() for path in (self.folder / folder).iterdir()
                if path.name not in ("config.json", "model.safetensors")}

    def test_a_tokenizer_goes_with_its_model(self):
        tokenizer = self.contents("tok")
        self.train("launcher.processes=2", "training.batch_size=2")
        self.assertEqual(self.contents(self.checkpoint(5) / "attachments"), tokenizer | GENERATION)
        self.assertIn("attachments/tokenizer.json",
                      self.trainer("checkpoint", "inspect", "run").stdout)
        self.assertIn("whole", self.trainer("checkpoint", "verify", "run").stdout)
        sums = subprocess.run(["sha256sum", "-c", "SHA256SUMS"], cwd=self.checkpoint(5), capture_output=True,
                              text=True, check=False)
        self.assertIn("attachments/tokenizer.json: OK", sums.stdout)
        self.assertEqual(sums.returncode, 0, sums.stdout)

        # A resume may name the files that the checkpoint has.
        self.train("training.max_steps=10",
                   "task.data.tokenizer=run/checkpoints/step-00000005/attachments")
        self.assertEqual(self.contents(self.checkpoint(10) / "attachments"), tokenizer | GENERATION)

        self.trainer("checkpoint", "export", "run", "hf")
        self.assertEqual(self.contents("hf"), tokenizer | GENERATION)
        told = self.trainer("checkpoint", "import", "hf", "back")
        self.assertEqual(told.stderr, "")
        self.assertIn("# its tokenizer: task.data.tokenizer=" + str(self.folder / "back/attachments"), told.stdout)
        self.assertEqual(self.contents("back/attachments"), tokenizer | GENERATION)
        self.assertIn("back: whole", self.trainer("checkpoint", "verify", "back").stdout)
        self.trainer("checkpoint", "export", "back", "again")
        self.assertEqual(self.contents("again"), tokenizer | GENERATION)
        self.assertEqual((self.folder / "again/model.safetensors").read_bytes(),
                         (self.folder / "hf/model.safetensors").read_bytes())

        # The folder is a tokenizer for other commands.
        told = self.trainer("tokenize", "text.txt", "--tokenizer=back/attachments", "--output=tokens")
        self.assertIn(" tokens, ", told.stdout)
        self.assertEqual(self.contents("tokens/tokenizer"), tokenizer)

    def test_a_resume_needs_the_same_tokenizer(self):
        self.train()
        self.write("tok/tokenizer_config.json", "{}")
        for change in ([], ["task.data.tokenizer=null"]):
            refused = self.train("training.max_steps=10", *change, code=2).stderr
            self.assertIn("'tokenizer_config.json' is", refused)
            self.assertIn("step-00000005/attachments", refused)
        self.assertFalse(self.checkpoint(10).exists())
        # A new run with these weights may have another one, or none.
        for name, tokenizer in (("other", "tok"), ("none", "null")):
            self.trainer("tokens.yaml", f"exp_dir={name}", "checkpoint.load_from=run",
                         f"task.data.tokenizer={tokenizer}", "training.max_steps=1")
        self.assertIn("attachment tokenizer_config.json: differs",
                      self.trainer("checkpoint", "diff", "run", "other").stdout)
        self.assertIn("attachment tokenizer.json: only in B",
                      self.trainer("checkpoint", "diff", "none", "run").stdout)
        # Where the tokenizer itself is lost, a checkpoint has it.
        shutil.rmtree(self.folder / "tok")
        carried = self.checkpoint(5) / "attachments"
        self.assertIn("loss", self.trainer("evaluate", "run", f"task.data.tokenizer={carried}").stdout)

    def test_damage_is_named(self):
        self.train("training.max_steps=10")
        path = self.checkpoint(10) / "attachments/tokenizer.json"
        os.truncate(path, 7)
        listed = self.trainer("checkpoint", "verify", "run", code=1).stdout
        self.assertIn("step-00000010: damaged: ", listed)
        self.assertIn("attachments/tokenizer.json' has 7 bytes", listed)
        refused = self.trainer("checkpoint", "export", "run/checkpoints/step-00000010", "hf", code=1).stderr
        self.assertIn("attachments/tokenizer.json' has 7 bytes", refused)
        self.assertIn("put the file back from a copy", refused)
        self.assertFalse((self.folder / "hf").exists())
        shutil.rmtree(path.parent)
        told = self.train("training.max_steps=10")
        self.assertIn("skipped step-00000010", told.stdout + told.stderr)
        self.assertEqual(self.contents(path.parent), self.contents("tok") | GENERATION)

    def test_a_tokenizer_that_does_not_fit_is_named(self):
        refused = self.train("model.vocab_size=259", code=2).stderr
        self.assertIn(f"the model knows 259 tokens (model.vocab_size), but the tokenizer 'tok' (task.data.tokenizer) "
                      f"has {VOCABULARY}: set model.vocab_size={VOCABULARY} or more", " ".join(refused.split()))
        self.assertFalse((self.folder / "run/checkpoints").exists())
        # At an import it is a warning: the files may be of use elsewhere.
        self.trainer("tiny.yaml", "exp_dir=bytes", "training.max_steps=1")
        self.trainer("checkpoint", "export", "bytes", "hf")
        self.assertEqual(self.contents("hf"), {})
        shutil.copytree(self.folder / "tok", self.folder / "hf", dirs_exist_ok=True)
        told = self.trainer("checkpoint", "import", "hf", "back").stderr
        self.assertIn(f"has {VOCABULARY} tokens, but the model knows 256", told)
        self.write("hf/tokenizer.json", "{}")
        self.assertIn("cannot be used here", self.trainer("checkpoint", "import", "hf", "odd").stderr)
        self.assertEqual(self.contents("odd/attachments"), self.contents("hf"))


if __name__ == "__main__":
    runs.main()
