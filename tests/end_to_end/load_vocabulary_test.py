# SPDX-License-Identifier: Apache-2.0
"""A run that begins with a model of another vocabulary: rows by token or by number, on any ranks, and new rows as
they are initialised."""

import json
import struct

from tests.end_to_end import byte_bpe, runs

# Nothing moves: what the first checkpoint holds is what was loaded.
STILL = ["training.max_steps=1", "optimizer.lr=1e-30", "lr_scheduler.warmup_steps=0", "lr_scheduler.decay_steps=40",
         "validation.max_batches=1"]
FROM = "checkpoint.load_from=source"
SHARDED = ["launcher.processes=2", "training.batch_size=2", "parallel.use_fsdp=true",
           "parallel.sharding_strategy=FULL_SHARD"]
THERE, HERE = byte_bpe.END + 1, byte_bpe.END + 3
MODELS = {
    "gpt2": "{name: gpt2, n_positions: 16, n_layer: 1, n_head: 2, n_embd: 16, vocab_size: SIZE}",
    "llama": "{name: llama, hidden_size: 16, intermediate_size: 24, num_hidden_layers: 1, num_attention_heads: 2, "
             "tie_word_embeddings: false, vocab_size: SIZE}",
    "t5": "{name: t5, d_model: 16, d_kv: 8, d_ff: 24, num_layers: 1, num_heads: 2, vocab_size: SIZE}",
}  # fmt: skip
TASKS = {
    False: "{name: language_modeling, sample: null, data: {sequence_length: 16, source: {name: text, "
           "files: [text.txt], tokenizer: TOK, cache: cache}}}",
    True: "{name: sequence_to_sequence, data: {tokenizer: TOK, input_length: 16, target_length: 8, pairs: {files: "
          "[pairs.jsonl], input: '{q}', target: '{a}'}}}",
}  # fmt: skip


def tensors_of(path):
    """Each tensor of a safetensors file: its shape and its bytes."""
    content = path.read_bytes()
    length, = struct.unpack("<Q", content[:8])
    header = json.loads(content[8:8 + length])
    return {name: (entry["shape"], content[8 + length:][slice(*entry["data_offsets"])])
            for name, entry in header.items() if name != "__metadata__"}


def rows_of(tensors):
    """The rows of each tensor that has one a token."""
    rows = {}
    for name, (shape, content) in tensors.items():
        if shape[0] in (THERE, HERE):
            width = len(content) // shape[0]
            rows[name] = [content[row * width:][:width] for row in range(shape[0])]
    return rows


class LoadVocabularyTest(runs.RunTest):

    def setUp(self):
        super().setUp()
        self.write("pairs.jsonl", "".join(json.dumps({"q": f"{i}", "a": f"{i * i}"}) + "\n" for i in range(40)))
        self.write("old/tokenizer.json", byte_bpe.tokenizer_json())
        # "he" and "the" change places, and two special tokens are new.
        other = json.loads(byte_bpe.tokenizer_json(("<|endoftext|>", "<|user|>", "<|end|>")))
        other["model"]["vocab"] |= {"he": 257, "the": 256}
        self.write("new/tokenizer.json", json.dumps(other))
        for name in ("old", "new"):
            self.write(f"{name}/tokenizer_config.json", '{"eos_token": "<|endoftext|>"}')

    def write_config(self, name, model, tokenizer, size):
        text = runs.CONFIG[runs.CONFIG.index("optimizer:"):]
        self.write(name, "name: supervised\n"
                   f"task: {TASKS[model == 't5'].replace('TOK', tokenizer)}\n"
                   f"model: {MODELS[model].replace('SIZE', str(size))}\n" + text)

    def rows(self, exp_dir):
        self.trainer("checkpoint", "export", exp_dir, exp_dir + "_hf")
        return rows_of(tensors_of(self.folder / (exp_dir + "_hf") / "model.safetensors"))

    def load(self, exp_dir, *arguments):
        told = self.trainer("new.yaml", f"exp_dir={exp_dir}", *STILL, *arguments).stdout
        return told, self.rows(exp_dir)

    def begin(self, model):
        self.write_config("old.yaml", model, "old", THERE)
        self.write_config("new.yaml", model, "new", HERE)
        self.trainer("old.yaml", "exp_dir=source", "training.max_steps=3", "lr_scheduler.warmup_steps=0",
                     "lr_scheduler.decay_steps=40", "validation.max_batches=1")
        return self.rows("source"), self.load("fresh")[1]

    def check(self, model):
        there, fresh = self.begin(model)
        self.assertEqual(there.keys(), fresh.keys())
        self.assertGreater(len(there), 0)
        by_token = {token: token for token in range(THERE)} | {256: 257, 257: 256}
        ways = {"by_token": by_token, "by_id": {token: token for token in range(THERE)}}
        for way, source in ways.items():
            for ranks in [], SHARDED:
                with self.subTest(way=way, ranks=ranks):
                    exp_dir = f"{way}_{len(ranks)}"
                    told, rows = self.load(exp_dir, FROM, f"checkpoint.load_vocabulary={way}", *ranks)
                    self.assertIn(f"rows of the vocabulary: {THERE} taken, 2 new and initialised, 0 left there", told)
                    for name, found in rows.items():
                        expected = [there[name][source[token]] if token in source else fresh[name][token]
                                    for token in range(HERE)]
                        self.assertEqual(found, expected, name)

    def test_gpt2(self):
        self.check("gpt2")

    def test_llama_with_a_head_of_its_own(self):
        self.check("llama")

    def test_t5(self):
        self.check("t5")

    def test_is_refused_unless_asked_for(self):
        self.begin("gpt2")
        told = self.trainer("new.yaml", "exp_dir=first", *STILL, FROM, code=2).stderr
        self.assertIn("checkpoint.load_vocabulary=by_token or by_id", " ".join(told.split()))
        self.trainer("checkpoint", "export", "source", "hf")
        told = self.trainer("new.yaml", "exp_dir=run", *STILL, "checkpoint.load_from=hf", code=2).stderr
        self.assertIn("another vocab_size needs checkpoint.load_vocabulary", " ".join(told.split()))
        self.assertFalse((self.folder / "run").exists())

    def test_a_folder_of_hugging_face_is_read_by_its_tokenizer(self):
        there, fresh = self.begin("gpt2")
        name, = there
        _, rows = self.load("by_token", "checkpoint.load_from=source_hf", "checkpoint.load_vocabulary=by_token")
        self.assertEqual(rows[name][256:258], [there[name][257], there[name][256]])
        self.assertEqual(rows[name][-2:], fresh[name][-2:])
        for file in (self.folder / "source_hf").glob("tokenizer*"):
            file.unlink()
        told = self.trainer("new.yaml", "exp_dir=none", *STILL, "checkpoint.load_from=source_hf",
                            "checkpoint.load_vocabulary=by_token", code=2).stderr
        self.assertIn("holds no tokenizer: write by_id", " ".join(told.split()))
        self.assertFalse((self.folder / "none").exists())

    def test_what_cannot_be_taken_is_told_before_the_run_has_a_folder(self):
        self.begin("gpt2")
        for file in (self.folder / "source").rglob("tokenizer*"):
            file.unlink()
        for arguments, message in [
            (["checkpoint.load_vocabulary=by_token"], "holds no tokenizer: write by_id"),
            (["checkpoint.load_vocabulary=by_id", "checkpoint.load_prefixes={w: other.w}"],
             "has no tensor of a vocabulary"),
        ]:
            with self.subTest(arguments):
                told = self.trainer("new.yaml", "exp_dir=none", *STILL, FROM, *arguments, code=2).stderr
                self.assertIn(message, " ".join(told.split()))
                self.assertFalse((self.folder / "none").exists())


if __name__ == "__main__":
    runs.main()
