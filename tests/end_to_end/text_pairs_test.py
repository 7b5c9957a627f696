# SPDX-License-Identifier: Apache-2.0
"""Tasks on pairs of texts and spans in real runs: the same losses on any ranks, faults, attachments."""

import json
import shutil

from tests.end_to_end import runs, text_pairs

COMMON = """\
name: supervised
optimizer: {name: adamw, lr: 1.0e-3}
lr_scheduler: {name: constant}
training: {max_steps: 8, batch_size: 2, global_batch_size: 8}
validation: {every_n_steps: 4}
logging: {every_n_steps: 1}
"""
T5 = """\
model: {name: t5, vocab_size: 384, d_model: 16, d_kv: 8, d_ff: 32, num_layers: 2, num_heads: 2, dropout_rate: 0}
"""
PAIRS = COMMON + T5 + """\
task:
  name: sequence_to_sequence
  data:
    tokenizer: bytes
    end_of_text: 1
    pairs: {files: [pairs.jsonl], validation_files: [validation.jsonl], input: "shorten: {document}", target: "{summary}"}
    input_length: 32
    target_length: 16
"""
SPANS = COMMON + T5 + """\
task:
  name: sequence_to_sequence
  data:
    tokenizer: bytes
    end_of_text: 1
    span_corruption: {source: {name: bytes, files: [text.txt]}}
    input_length: 32
"""
ANSWERS = COMMON + """\
model: {name: gpt2, vocab_size: 256, n_positions: 32, n_layer: 2, n_head: 2, n_embd: 16, embd_pdrop: 0, attn_pdrop: 0,
        resid_pdrop: 0}
task:
  name: instruction_tuning
  data:
    tokenizer: bytes
    end_of_text: 1
    pairs: {files: [pairs.jsonl], validation_files: [validation.jsonl], input: "{document}: ", target: "{summary}"}
    sequence_length: 32
"""
CONFIGS = {"pairs": PAIRS, "spans": SPANS, "answers": ANSWERS}
# What each fault changes: (config, overrides, what the message says).
FAULTS = (
    ("pairs", ["task.data.pairs.files=[gone.jsonl]"], "task.data.pairs.files: there is no file"),
    ("pairs", ["task.data.pairs.files=[text.txt]"], "text.txt', line 1: the line is no JSON"),
    ("pairs", ["task.data.pairs.files=[empty.jsonl]"], "empty.jsonl': it has no lines"),
    ("pairs", ["task.data.pairs.files=[cut.jsonl.gz]"], "cut.jsonl.gz"),
    ("pairs", ["task.data.pairs.target='{title}'"],
     "pairs.jsonl', line 1: the line has no field 'title': its fields are 'document', 'summary'"),
    ("pairs", ["task.data.pairs.input=summarize"], "the template 'summarize' names no field"),
    ("pairs", ["task.data.end_of_text=null"], "task.data.end_of_text"),
    ("pairs", ["task.data.tokenizer=gone"], "task.data.tokenizer"),
    ("pairs", ["task.data.input_length=12", "task.data.pairs.too_long=broken"], "the input has"),
    ("pairs", ["model.vocab_size=200"], "the model knows 200 tokens"),
    ("spans", ["model.vocab_size=355"], "the model knows 355 tokens"),
    ("spans", ["task.data.span_corruption.sentinels=1"], "there are 1 sentinels"),
    ("spans", ["task.data.input_length=100000", "task.data.span_corruption.sentinels=10000",
               "model.vocab_size=10300"], "give more text"),
    ("answers", ["task.data.sequence_length=64"], "the model takes at most 32 tokens"),
    ("answers", ["task.data.end_of_text=256"], "needs 257"),
    ("answers", ["task.data.sequence_length=4"], "no target is left of 4"),
    ("answers", ["model={name: t5, d_model: 8, num_heads: 1}"], "CausalLanguageModel"),
)


class TextPairsTest(runs.RunTest):

    def setUp(self):
        super().setUp()
        text_pairs.write_pairs(self.folder / "pairs.jsonl", 60)
        text_pairs.write_pairs(self.folder / "validation.jsonl", 10, seed=2)
        for name, config in CONFIGS.items():
            self.write(f"{name}.yaml", config)

    def final_losses(self, exp_dir):
        return {(row["phase"], row["step"]): row["loss"] for row in self.rows(exp_dir)}

    def test_losses_are_equal_on_any_ranks_and_after_a_resume(self):
        sharded = ("parallel.use_fsdp=true", "parallel.sharding_strategy=FULL_SHARD",
                   "activation_checkpointing.policy=unit")
        for name in CONFIGS:
            with self.subTest(name):
                self.trainer(f"{name}.yaml", f"exp_dir={name}-one")
                self.trainer(f"{name}.yaml", f"exp_dir={name}-ranks", "launcher.processes=2", *sharded,
                             "training.max_steps=4")
                self.trainer(f"{name}.yaml", f"exp_dir={name}-ranks", "launcher.processes=2")  # DDP
                expected, found = self.final_losses(f"{name}-one"), self.final_losses(f"{name}-ranks")
                self.assertEqual(found.keys(), expected.keys())
                self.assertIn(("validate", 8), expected)
                for key, loss in expected.items():
                    self.assertAlmostEqual(found[key], loss, delta=1e-4, msg=str(key))

    def test_a_sentinel_in_a_prompt_is_one_where_generate_is_asked_for_special_tokens(self):
        self.trainer("pairs.yaml", "exp_dir=run", "training.max_steps=1", "optimizer.lr=1.0e-30")
        self.write("asked.jsonl", json.dumps({"prompt": "a<extra_id_0>b"}) + "\n")
        generated = lambda *how: json.loads(self.trainer(  # noqa: E731
            "generate", "run", "--input=asked.jsonl", "max_new_tokens=12", *how).stdout)["generated"]
        # As a run that reads its pairs so.
        as_token = generated("task.data.pairs.special_tokens=true")
        self.assertNotEqual(as_token, generated())
        self.assertEqual(generated("special_tokens=true"), as_token)
        self.assertEqual(generated("special_tokens=true", "--tokenizer=bytes"), as_token)
        self.assertEqual(generated("special_tokens=false"), generated())

    def test_faults_end_a_run_before_its_first_step(self):
        self.write("empty.jsonl", "\n\n")
        (self.folder / "cut.jsonl.gz").write_bytes(b"\x1f\x8b\x08\x00")
        for name, overrides, message in FAULTS:
            with self.subTest(overrides):
                refused = self.trainer(f"{name}.yaml", "exp_dir=fault", *overrides, code=2)
                self.assertIn(message, refused.stderr)
                self.assertFalse((self.folder / "fault/checkpoints").exists())
                shutil.rmtree(self.folder / "fault", ignore_errors=True)

    def test_broken_lines_are_left_out_up_to_a_limit(self):
        with open(self.folder / "pairs.jsonl", "a") as file:
            file.write('{"document": "cut o\n\n{"document": "no summary"}\n')
        epoch = ("training.max_steps=null", "training.max_epochs=1")
        failed = self.trainer("pairs.yaml", "exp_dir=none", *epoch, code=2)
        self.assertIn("pairs.jsonl', line 61: the line is no JSON", failed.stderr)
        left_out = self.trainer("pairs.yaml", "exp_dir=two", *epoch, "task.data.loader.max_broken=2").stdout
        self.assertIn("(a line that is no JSON object)", left_out)
        self.assertIn("(a line without the fields of a pair)", left_out)

    def test_what_is_cut_is_said(self):
        told = self.trainer("pairs.yaml", "exp_dir=run", "training.max_steps=1", "task.data.input_length=16",
                            "validation.sets={more: [validation.jsonl]}").stderr
        cut = r"\d+ are cut to 16 tokens of input and 16 of target"
        self.assertRegex(told, "of 60 pairs looked at for training, " + cut)
        self.assertRegex(told, r"of \d+ pairs looked at for validation, " + cut)
        self.assertRegex(told, r"of \d+ pairs looked at for validation on 'validation\.jsonl', " + cut)

    def test_a_checkpoint_carries_the_tokenizer(self):
        characters = "\n" + "".join(sorted(set("".join(map("".join, text_pairs.pairs(60))) + "shorten: ")))
        self.write("tok/characters.txt", characters)
        self.trainer("pairs.yaml", "exp_dir=run", "training.max_steps=1", "task.data.tokenizer=tok",
                     "task.data.end_of_text=0")
        carried = self.folder / "run/checkpoints/step-00000001/attachments/characters.txt"
        self.assertEqual(carried.read_text(), characters)
        manifest = json.loads((carried.parent.parent / "manifest.json").read_text())
        self.assertIn("characters.txt", json.dumps(manifest))


if __name__ == "__main__":
    runs.main()
