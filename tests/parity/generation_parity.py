# SPDX-License-Identifier: Apache-2.0
"""Compares what `trainer generate` writes with transformers' generate, token by token, in float64: greedily
and by beams, with and without a cache, on one rank and on FULL_SHARD 2, for GPT-2, Llama and T5."""

import json

import torch

from tests.end_to_end import runs
from tests.long import is_long
from tests.parity import writers
from tests.parity.transformers_peer import be_quiet_on_one_thread, computing_in
from tests.parity.writers import NEW_TOKENS, PAD, random_prompts

VOCABULARY = 61
FULL_SHARD = ["launcher.processes=2", "parallel.use_fsdp=true", "parallel.sharding_strategy=FULL_SHARD"]
# Ours; transformers' have the same names.
SEARCHES = [
    {},
    {"repetition_penalty": 1.4},
    {"num_beams": 4},
    {"num_beams": 3, "length_penalty": 2.0},
    {"num_beams": 3, "early_stopping": True, "length_penalty": -0.5},
    {"num_beams": 2, "repetition_penalty": 1.2},
]


FAMILIES = {"gpt2": (writers.gpt2, {}), "llama": (writers.llama, {}),
            "t5": (writers.t5, {"eos_token_id": None, "pad_token_id": PAD})}


def random_model(family):
    make, tokens = FAMILIES[family]
    return writers.random_model(make, VOCABULARY, **tokens)


class GenerationParityTest(runs.RunTest):

    def setUp(self):
        super().setUp()
        be_quiet_on_one_thread()
        self.prompts = random_prompts(range(1, VOCABULARY), (5, 1, 9, 7, 12))
        lines = [json.dumps({"prompt_token_ids": prompt}) + "\n" for prompt in self.prompts]
        self.write("prompts.jsonl", "".join(lines))

    def theirs(self, model, search, eos, use_cache=True):
        """By transformers' batch: causal models have prompts padded on the left, T5 on the right."""
        is_causal = not model.config.is_encoder_decoder
        longest = max(len(prompt) for prompt in self.prompts)
        ids, mask = [], []
        for prompt in self.prompts:
            padding = [PAD] * (longest - len(prompt))
            there = [1] * len(prompt)
            ids.append(padding + prompt if is_causal else prompt + padding)
            mask.append([0] * len(padding) + there if is_causal else there + [0] * len(padding))
        with torch.no_grad():
            rows = model.generate(
                torch.tensor(ids), attention_mask=torch.tensor(mask), max_new_tokens=NEW_TOKENS, do_sample=False,
                eos_token_id=eos, pad_token_id=PAD, use_cache=use_cache, **search)
        begin = longest if is_causal else 1
        texts = [row[begin:].tolist() for row in rows]
        return [text[:text.index(eos)] if eos in text else text for text in texts]

    def ours(self, search, eos, *overrides):
        fields = [f"{key}={json.dumps(value)}" for key, value in search.items()]
        eos_field = "eos_token_id=[]" if eos is None else f"eos_token_id=[{eos}]"
        printed = self.trainer("generate", "lm", "--input=prompts.jsonl", f"max_new_tokens={NEW_TOKENS}", eos_field,
                               "use_double_weight_precision=true", "batch_size=5", *fields, *overrides).stdout
        rows = [json.loads(line) for line in printed.splitlines()]
        self.assertEqual([row["prompt_token_ids"] for row in rows], self.prompts)
        return [row["generated_token_ids"] for row in rows]

    def test_texts_are_those_of_transformers(self):
        for name in FAMILIES:
            random_model(name).save_pretrained(self.folder / "lm")
            with computing_in(torch.float64):
                self.compare(name, random_model(name).double())

    def compare(self, name, model):
        free = self.theirs(model, {}, None)
        self.assertGreater(sum(len(set(text)) for text in free), 20, free)
        # Some texts end early by it, others do not.
        eos = next(token for token in range(VOCABULARY) if sum(token in text[1:] for text in free) in (1, 2, 3))
        for number, search in enumerate(SEARCHES):
            expected = self.theirs(model, search, eos)
            label = f"{name} {search}"
            ended = sum(len(text) < NEW_TOKENS for text in expected)
            print(f"{label}: {sum(map(len, expected))} tokens, {ended} of {len(expected)} texts ended")
            with self.subTest(label):
                self.assertEqual(self.ours(search, eos), expected)
                if number in (0, 2) or is_long():
                    self.assertEqual(self.ours(search, eos, "use_cache=false"), expected, "without a cache")
                    self.assertEqual(self.ours(search, eos, *FULL_SHARD, "batch_size=2"), expected, "FULL_SHARD 2")

    def test_in_bfloat16_texts_are_as_good_as_transformers(self):
        for name in FAMILIES:
            random_model(name).save_pretrained(self.folder / "lm")
            process = self.trainer("generate", "lm", "--input=prompts.jsonl", f"max_new_tokens={NEW_TOKENS}",
                                   "eos_token_id=[]", "dtype=bfloat16")
            ours = [json.loads(line)["generated_token_ids"] for line in process.stdout.splitlines()]
            theirs = self.theirs(random_model(name).to(torch.bfloat16), {}, None)
            with computing_in(torch.float64):
                model = random_model(name).double()
            of_ours, of_theirs = (self.behind_the_likeliest(model, texts) for texts in (ours, theirs))
            print(f"{name} in bfloat16, logits behind the likeliest: {of_ours:.5f}, transformers' {of_theirs:.5f}")
            with self.subTest(name):
                self.assertLess(of_ours, 2 * of_theirs + 1e-3)

    def behind_the_likeliest(self, model, texts):
        """By how much the tokens of texts are less likely than the likeliest ones: the mean difference of logits,
        over the largest logit."""
        differences = []
        for prompt, text in zip(self.prompts, texts, strict=True):
            self.assertEqual(len(text), NEW_TOKENS)
            with torch.no_grad():
                if model.config.is_encoder_decoder:
                    written = torch.tensor([[PAD, *text[:-1]]])
                    logits = model(torch.tensor([prompt]), decoder_input_ids=written).logits[0]
                else:
                    logits = model(torch.tensor([prompt + text[:-1]])).logits[0, len(prompt) - 1:]
            chosen = logits.gather(1, torch.tensor(text)[:, None])[:, 0]
            differences.append((logits.max(1).values - chosen) / logits.abs().max(1).values)
        return torch.cat(differences).mean().item()


if __name__ == "__main__":
    runs.main()
