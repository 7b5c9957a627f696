# SPDX-License-Identifier: Apache-2.0
"""An export's texts end where the run's end: what transformers writes greedily with an exported folder, with nothing
set by hand but the limit, beside `trainer generate` with the run and with the folder, token by token, in float64."""

import itertools
import json

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM, AutoTokenizer

from tests.end_to_end import runs
from tests.long import is_long, tell_sample
from tests.parity.byte_tokenizer import BYTES, END, OTHER_END, VOCABULARY, byte_tokenizer
from tests.parity.transformers_peer import be_quiet_on_one_thread, computing_in
from tests.parity.writers import NEW_TOKENS, gpt2, llama, qwen2, random_model, random_prompts, t5

# The weights stay as they are, bit for bit.
STILL = """\
name: supervised
optimizer: {name: adamw, lr: 1.0e-30, weight_decay: 0}
training: {max_steps: 1, batch_size: 1}
use_double_weight_precision: true
checkpoint: {load_from: lm}
"""
PAIRS = "pairs: {files: [pairs.jsonl], input: '{q}', target: '{a}', validation_fraction: 0}"
TASKS = {
    "language_modeling": "task: {name: language_modeling, sample: {tokens: 0}, data: {sequence_length: 16, "
                         "validation_fraction: 0, source: {name: text, files: [text.txt], tokenizer: lm, cache: c}}}",
    "instruction_tuning": "task: {name: instruction_tuning, data: {tokenizer: lm, sequence_length: 32, %s, %s}}",
    "pairs": "task: {name: sequence_to_sequence, data: {tokenizer: lm, %s, %s}}",
    "spans": "task: {name: sequence_to_sequence, data: {tokenizer: lm, %s, input_length: 16, span_corruption: {source: "
             "{name: bytes, files: [text.txt]}, first_sentinel: 255, sentinels: 20, validation_fraction: 0}}}",
}
# Those that run by default come first. Of language_modeling the tokenizer names the end, of the others the run.
CASES = [(gpt2, "language_modeling"), (llama, "instruction_tuning"), (qwen2, "instruction_tuning"), (t5, "pairs"),
         (gpt2, "instruction_tuning"), (llama, "language_modeling"), (qwen2, "language_modeling"), (t5, "spans")]
BY_DEFAULT = 4
WORDS = ["the", "fox", "do", "##g", "f", "▁the", "▁fox", "▁do", "g", "▁"]
VOCAB = {text: place for place, text in enumerate(["<unk>", *WORDS])}
# Tokenizers that are none of the model's usual ones; their tokenizer_config.json, which names no class, or none.
UNUSUAL = {
    "WordPiece": (gpt2, models.WordPiece(VOCAB, unk_token="<unk>"), pre_tokenizers.Whitespace(), None),
    "WordLevel": (gpt2, models.WordLevel(VOCAB, unk_token="<unk>"), pre_tokenizers.Whitespace(), {"eos_token": "fox"}),
    "Unigram": (t5, models.Unigram([(text, -1.0 - place) for text, place in VOCAB.items()], unk_id=0),
                pre_tokenizers.Metaspace(), None),
}


def model_of(make, exchange):
    """With two tokens to exchange, texts hold the one where they would hold the other."""
    model = random_model(make, VOCABULARY)
    return model if exchange is None else exchanged(model, *exchange)


def exchanged(model, one, other):
    with torch.no_grad():
        for weight in {model.get_input_embeddings().weight, model.get_output_embeddings().weight}:
            weight[[one, other]] = weight[[other, one]]
    return model


class ExportParityTest(runs.RunTest):

    def setUp(self):
        super().setUp()
        be_quiet_on_one_thread()
        self.write("text.txt", runs.TEXT[:400])
        self.write("pairs.jsonl", json.dumps({"q": "abc", "a": "d"}) + "\n")

    def theirs(self, model, prompts):
        """The tokens behind each prompt, and whether the text ended before the limit."""
        texts = []
        for prompt in prompts:
            with torch.no_grad():
                row, = model.generate(torch.tensor([prompt]), max_new_tokens=NEW_TOKENS, do_sample=False)
            texts.append(row[1 if model.config.is_encoder_decoder else len(prompt):].tolist())
        return texts

    def ours(self, folder, prompts):
        self.write("prompts.jsonl", "".join(json.dumps({"prompt_token_ids": prompt}) + "\n" for prompt in prompts))
        printed = self.trainer("generate", folder, "--input=prompts.jsonl", f"max_new_tokens={NEW_TOKENS}",
                               "use_double_weight_precision=true").stdout
        return [(row["generated_token_ids"], row["finish_reason"]) for row in map(json.loads, printed.splitlines())]

    def ends(self, model, prompts, end):
        """How many texts end by a token that is not said to be the end: the limit does not count."""
        model.generation_config.eos_token_id = None
        texts = self.theirs(model, prompts)
        return sum(end in text[:-1] for text in texts)

    def some_end(self, make, task, prompts):
        """A model, and the token that ends some of its texts, and not all."""
        with computing_in(torch.float64):
            if task == "language_modeling":
                for other in range(8, BYTES):
                    model = model_of(make, (END, other)).double()
                    if 0 < self.ends(model, prompts, END) < len(prompts):
                        return (END, other), END
            for end in itertools.chain([OTHER_END], range(8, BYTES)):
                inputs = prompts if make is not t5 else [prompt + [end] for prompt in prompts]
                if 0 < self.ends(model_of(make, None).double(), inputs, end) < len(prompts):
                    return None, end
        raise AssertionError("no token ends some of the texts")

    def test_texts_end_where_those_of_the_run_end(self):
        cases = CASES if is_long() else CASES[:BY_DEFAULT]
        tell_sample(len(cases), len(CASES), "families and tasks")
        for number, (make, task) in enumerate(cases):
            with self.subTest(f"{make.__name__} {task}"):
                self.compare(make, task, f"run{number}")

    def compare(self, make, task, run):
        prompts = random_prompts(range(8, BYTES), (5, 1, 9, 7, 12, 3))
        exchange, end = self.some_end(make, task, prompts)
        model_of(make, exchange).save_pretrained(self.folder / "lm")
        byte_tokenizer().save_pretrained(self.folder / "lm")
        fields = [f"end_of_text: {end}", PAIRS][:TASKS[task].count("%s")]
        self.write(f"{run}.yaml", STILL + TASKS[task] % tuple(fields))
        self.trainer(f"{run}.yaml", f"exp_dir={run}")
        self.trainer("checkpoint", "export", run, f"{run}_hf")

        inputs = prompts if make is not t5 else [prompt + [end] for prompt in prompts]
        kind = AutoModelForSeq2SeqLM if make is t5 else AutoModelForCausalLM
        with computing_in(torch.float64):
            texts = self.theirs(kind.from_pretrained(self.folder / f"{run}_hf").double(), inputs)
        expected = [(text[:-1], "eos") if text[-1] == end else (text, "length") for text in texts]
        ended = sum(reason == "eos" for _, reason in expected)
        print(f"{make.__name__} {task}: {ended} of {len(texts)} texts end by token {end}")
        self.assertGreater(ended, 0)
        self.assertLess(ended, len(texts))
        for folder in (run, f"{run}_hf"):
            self.assertEqual(self.ours(folder, inputs), expected, folder)
        self.assertEqual(AutoTokenizer.from_pretrained(self.folder / f"{run}_hf").eos_token_id, end)

    def test_transformers_makes_the_runs_tokens(self):
        text = "the dog, the fox do"
        for name, (make, model, cuts, config) in UNUSUAL.items():
            with self.subTest(name):
                tokenizer = Tokenizer(model)
                tokenizer.pre_tokenizer = cuts
                self.write(f"{name}/tokenizer.json", tokenizer.to_str())
                if config:
                    self.write(f"{name}/tokenizer_config.json", json.dumps(config))
                random_model(make, VOCABULARY).save_pretrained(self.folder / "lm")
                task = TASKS["pairs" if make is t5 else "instruction_tuning"] % (f"end_of_text: {END}", PAIRS)
                self.write(f"{name}.yaml", STILL + task.replace("tokenizer: lm", f"tokenizer: {name}"))
                self.trainer(f"{name}.yaml", f"exp_dir={name}-run")
                self.trainer("checkpoint", "export", f"{name}-run", f"{name}-hf")
                made = AutoTokenizer.from_pretrained(self.folder / f"{name}-hf")
                self.assertEqual(made(text)["input_ids"], tokenizer.encode(text).ids)


if __name__ == "__main__":
    runs.main()
