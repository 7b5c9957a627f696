# SPDX-License-Identifier: Apache-2.0
"""The token that ends a run's texts, and the files that came with its model, are in its exports.

That transformers' texts end by it is compared in tests/parity/export_parity.py.
"""

import json
import shutil

from tests.end_to_end import byte_bpe, runs, text_pairs

END, OTHER_END, VOCABULARY = byte_bpe.END, byte_bpe.END + 1, byte_bpe.END + 2
# The weights stay as they were drawn, and are so large that texts do not repeat one token.
STILL = """\
name: supervised
optimizer: {name: adamw, lr: 1.0e-30, weight_decay: 0}
training: {max_steps: 1, batch_size: 2}
"""
GPT2 = "model: {name: gpt2, vocab_size: %d, n_positions: 64, n_layer: 2, n_head: 2, n_embd: 16, initializer_range: 0.5}\n"
ANSWERS = """\
task:
  name: instruction_tuning
  data: {tokenizer: %s, end_of_text: %d, sequence_length: 64,
         pairs: {files: [pairs.jsonl], input: "{document}: ", target: "{summary}", validation_fraction: 0}}
"""
SUMMARIES = """\
model: {name: t5, vocab_size: 256, d_model: 16, d_kv: 8, d_ff: 32, num_layers: 2, num_heads: 2}
task:
  name: sequence_to_sequence
  data: {tokenizer: bytes, end_of_text: 9, input_length: 32, target_length: 16,
         pairs: {files: [pairs.jsonl], input: "{document}", target: "{summary}", validation_fraction: 0}}
"""
DOCUMENTS = """\
task:
  name: language_modeling
  data: {sequence_length: 16, validation_fraction: 0,
         source: {name: text, files: [text.txt], tokenizer: theirs, cache: cache}}
  sample: {tokens: 0}
"""
TEMPLATE = "{% for m in messages %}{{ m.content }}<|im_end|>{% endfor %}\n"


class ExportEndTest(runs.RunTest):

    def setUp(self):
        super().setUp()
        text_pairs.write_pairs(self.folder / "pairs.jsonl", 8)

    def train(self, name, config, *arguments):
        self.write(f"{name}.yaml", STILL + config)
        self.trainer(f"{name}.yaml", f"exp_dir={name}", *arguments)

    def export(self, source, destination):
        self.trainer("checkpoint", "export", source, destination)
        return self.folder / destination

    def read(self, folder, name="generation_config.json"):
        return json.loads((self.folder / folder / name).read_text())

    def texts(self, folder, *fields):
        printed = self.trainer("generate", folder, "--input=prompts.jsonl", "max_new_tokens=20", *fields).stdout
        return [(row["generated_token_ids"], row["finish_reason"]) for row in map(json.loads, printed.splitlines())]

    def contents(self, folder):
        """The bytes of each file of a folder that is none of the model's own."""
        return {path.name: path.read_bytes() for path in (self.folder / folder).iterdir()
                if path.name not in ("config.json", "model.safetensors")}

    def made_by_others(self, ends):
        """A folder `theirs` with all that save_pretrained and authors of models put into one."""
        self.train("first", GPT2 % VOCABULARY + ANSWERS % ("bytes", 1))
        self.export("first", "theirs")
        for name, text in {
            "tokenizer.json": byte_bpe.tokenizer_json(("<|endoftext|>", "<|im_end|>")),
            "tokenizer_config.json": '{"eos_token": "<|endoftext|>",  "tokenizer_class": "PreTrainedTokenizerFast"}',
            "special_tokens_map.json": '{"eos_token": {"content": "<|endoftext|>", "special": true}}\r\n',
            "added_tokens.json": '{"<|im_end|>": 260}',
            "chat_template.jinja": TEMPLATE,
            "generation_config.json": json.dumps({"bos_token_id": 5, "eos_token_id": ends, "max_length": 99,
                                                  "transformers_version": "5.0.0"}),
        }.items():
            self.write(f"theirs/{name}", text)

    def test_texts_of_an_export_end_where_those_of_the_run_end(self):
        self.train("free", GPT2 % 256 + ANSWERS % ("bytes", 1))
        self.write("prompts.jsonl", "".join(json.dumps({"prompt_token_ids": [9, 7, place]}) + "\n"
                                            for place in range(5)))
        free = [tokens for tokens, _ in self.texts("free", "eos_token_id=[]")]
        end = next(token for token in range(256) if sum(token in text[1:-1] for text in free) in (1, 2, 3))
        self.train("own", GPT2 % 256 + ANSWERS % ("bytes", end))
        folder = self.export("own", "own_hf")
        self.assertEqual(self.read("own_hf"), {"eos_token_id": end})
        self.assertEqual(self.read("own_hf", "config.json")["eos_token_id"], end)
        expected = [(text[:text.index(end)], "eos") if end in text else (text, "length") for text in free]
        shutil.copytree(self.folder / "own/checkpoints/step-00000001", self.folder / "moved")
        self.trainer("checkpoint", "import", "own_hf", "back")
        for place in ("own", "moved", folder.name, "back"):
            self.assertEqual(self.texts(place), expected, place)
        # A tokenizer that the command line names has another end, or none: what was learned counts.
        self.assertEqual(self.texts("own", "--tokenizer=bytes"), expected)
        # What the command line says of the task counts more.
        self.assertEqual([tokens for tokens, _ in self.texts("own", "task.data.end_of_text=255")][0],
                         free[0][:free[0].index(255)] if 255 in free[0] else free[0])

    def test_an_encoder_decoder_has_its_other_tokens_too(self):
        self.train("t5", SUMMARIES)
        self.export("t5", "t5_hf")
        self.assertEqual(self.read("t5_hf"), {"eos_token_id": 9, "decoder_start_token_id": 0, "pad_token_id": 0})
        self.assertEqual(self.read("t5_hf", "config.json")["eos_token_id"], 9)
        # A run that begins with it may end its texts with another one.
        self.train("again", SUMMARIES, "checkpoint.load_from=t5_hf", "task.data.end_of_text=8", "model.eos_token_id=8")
        self.export("again", "again_hf")
        self.assertEqual(self.read("again_hf"), {"eos_token_id": 8, "decoder_start_token_id": 0, "pad_token_id": 0})

    def test_files_that_came_with_the_model_go_back_out(self):
        self.made_by_others([END, 258])
        theirs = self.contents("theirs")
        self.train("tuned", DOCUMENTS, "checkpoint.load_from=theirs")
        self.assertEqual(self.contents("tuned/checkpoints/step-00000001/attachments"), theirs)
        self.export("tuned", "tuned_hf")
        self.assertEqual(self.contents("tuned_hf"), theirs)
        config = self.read("tuned_hf", "config.json")
        self.assertEqual((config["bos_token_id"], config["eos_token_id"]), (5, [END, 258]))
        # The next run begins with the run, and the one after that resumes without the folder.
        self.train("next", DOCUMENTS, "checkpoint.load_from=tuned_hf")
        (self.folder / "theirs").rename(self.folder / "moved")
        self.train("next", DOCUMENTS, "checkpoint.load_from=tuned_hf", "training.max_steps=2",
                   "task.data.source.tokenizer=next/checkpoints/step-00000001/attachments")
        self.train("later", GPT2 % VOCABULARY + DOCUMENTS, "checkpoint.load_from=next",
                   "task.data.source.tokenizer=moved")
        for run in ("next", "later"):
            self.export(run, f"{run}_hf")
            self.assertEqual(self.contents(f"{run}_hf"), theirs, run)
        self.trainer("checkpoint", "import", "moved", "back")
        self.export("back", "back_hf")
        self.assertEqual(self.contents("back_hf"), theirs)

    def test_another_end_is_named_in_every_file(self):
        self.made_by_others(END)
        theirs = self.contents("theirs")
        self.train("tuned", ANSWERS % ("theirs", OTHER_END), "checkpoint.load_from=theirs")
        self.export("tuned", "tuned_hf")
        found = self.contents("tuned_hf")
        changed = {name for name in theirs if found[name] != theirs[name]}
        self.assertEqual(changed, {"generation_config.json", "tokenizer_config.json", "special_tokens_map.json"})
        self.assertEqual(found.keys(), theirs.keys())
        self.assertEqual(self.read("tuned_hf"), json.loads(theirs["generation_config.json"])
                         | {"eos_token_id": OTHER_END})
        self.assertEqual(self.read("tuned_hf", "config.json")["eos_token_id"], OTHER_END)
        self.assertEqual(self.read("tuned_hf", "tokenizer_config.json")["eos_token"], "<|im_end|>")
        self.assertEqual(self.read("tuned_hf", "special_tokens_map.json"),
                         {"eos_token": {"content": "<|im_end|>", "special": True}})

    def test_with_another_tokenizer_their_tokenizers_files_stay_behind(self):
        self.made_by_others(END)
        self.train("tuned", ANSWERS % ("bytes", 3), "checkpoint.load_from=theirs")
        self.export("tuned", "tuned_hf")
        self.assertEqual(list(self.contents("tuned_hf")), ["generation_config.json"])
        self.assertEqual(self.read("tuned_hf")["eos_token_id"], 3)

    def test_a_generation_config_that_is_no_json_is_refused_before_the_training(self):
        self.made_by_others(END)
        self.write("theirs/generation_config.json", "{")
        self.write("tuned.yaml", STILL + DOCUMENTS)
        told = self.trainer("tuned.yaml", "checkpoint.load_from=theirs", "exp_dir=tuned", code=2).stderr
        self.assertIn("theirs/generation_config.json' is no JSON", told)
        self.assertFalse((self.folder / "tuned").exists())

    def test_a_checkpoint_that_does_not_say_has_the_end_of_its_tokenizer(self):
        self.made_by_others(END)
        for name in ("generation_config.json", "tokenizer_config.json"):
            (self.folder / "theirs" / name).unlink()
        config = self.read("theirs", "config.json") | {"eos_token_id": None}
        self.write("theirs/config.json", json.dumps(config))
        self.trainer("checkpoint", "import", "theirs", "back")
        self.assertNotIn("generation_config.json", self.contents("back/attachments"))
        self.export("back", "back_hf")
        self.assertEqual(self.read("back_hf"), {"eos_token_id": END})
        self.assertEqual(self.read("back_hf", "config.json")["eos_token_id"], END)
        # Beside a tokenizer.json alone transformers would take the tokenizer that is usual for the model.
        self.assertEqual(self.read("back_hf", "tokenizer_config.json"),
                         {"eos_token": "<|endoftext|>", "tokenizer_class": "PreTrainedTokenizerFast"})


if __name__ == "__main__":
    runs.main()
