# SPDX-License-Identifier: Apache-2.0
"""Tokens that are read with another tokenizer than made them, and one that has no tokens for the sample's prompt."""

import json
import shutil

from tests.end_to_end import byte_bpe, runs

SET = "{name: nanogpt, files: ['tokens/train_*.bin'], end_of_text: 259}"
TEXT = "{name: text, files: [text.txt], tokenizer: tok, cache: cache}"
BYTES = "task.data.tokenizer=bytes"
OF_BYTES = ("the tokens are of the tokenizer 'tokens/tokenizer' (260 tokens), but task.data.tokenizer is 'bytes' (256 "
            "tokens), in which 4 of them are others: token 256 is 'he' in the first and none in the second")
STEPS = ("training.max_steps=1", "lr_scheduler.decay_steps=40", "validation.max_batches=1")


def word_piece():
    words = ["[UNK]", "the", "quick", "brown", "fox", "jumps", "over", "lazy", "dogs", ".", ":", *"0123456789"]
    return json.dumps({
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None,
        "pre_tokenizer": {"type": "Whitespace"}, "post_processor": None,
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                  "max_input_chars_per_word": 100, "vocab": {word: place for place, word in enumerate(words)}}})


class OtherTokenizer(runs.RunTest):

    config = runs.CONFIG.replace("vocab_size: 256", "vocab_size: 300")

    def setUp(self):
        super().setUp()
        self.write("tok/tokenizer.json", byte_bpe.tokenizer_json())
        self.once(["tokenize", "text.txt", "--tokenizer=tok", "--output=tokens", "--format=nanogpt"])

    def with_data(self, data):
        self.write("data.yaml", self.config.replace("path: text.txt", data))

    def refused(self, *arguments):
        return " ".join(self.trainer(*arguments, code=2).stderr.split())

    def test_tokens_of_another_tokenizer_are_refused_wherever_they_are_named(self):
        for data, place in (
                (f"source: {SET}", "task.data.source.files"),
                (f"mixture: [{{source: {SET}}}]", "task.data.mixture[0].source.files"),
                (f"source: {{name: concatenation, sources: [{SET}]}}", "task.data.source.sources[0].files")):
            with self.subTest(place):
                self.with_data(data)
                self.assertIn(f"{place}: {OF_BYTES}; set task.data.tokenizer to the tokenizer that made the tokens",
                              self.refused("data.yaml", BYTES, *STEPS))
        self.with_data(f"source: {TEXT}, validation_source: {SET}")
        self.assertIn("task.data.source: the tokens are of the tokenizer 'tok' (260 tokens), but task.data.tokenizer "
                      "is 'bytes'", self.refused("data.yaml", BYTES, *STEPS))
        self.trainer("data.yaml", *STEPS)  # The source's own tokenizer is that of the validation's tokens.
        shutil.rmtree(self.folder / "tokens/tokenizer")
        self.with_data(f"source: {SET}")
        self.assertIn("the tokens are of a tokenizer of 260 tokens, as 'tokens/tokens.json' says, but "
                      "task.data.tokenizer is 'bytes', which has 256", self.refused("data.yaml", BYTES, *STEPS))

    def test_the_same_tokenizer_elsewhere_and_one_with_more_tokens_are_taken(self):
        self.write("more/tokenizer.json", byte_bpe.tokenizer_json(["<|endoftext|>", "<|user|>"]))
        self.with_data(f"source: {SET}")
        for tokenizer in ("tokens/tokenizer", "tok", "more"):
            with self.subTest(tokenizer):
                self.trainer("data.yaml", f"task.data.tokenizer={tokenizer}", *STEPS)

    def test_inspect_says_that_its_tokenizer_is_another_one(self):
        self.assertNotIn("broken", self.trainer("data", "inspect", "tokens", "--tokenizer=tok").stdout)
        told = self.trainer("data", "inspect", "tokens", "--tokenizer=bytes", code=1).stdout
        self.assertIn("broken: " + OF_BYTES.replace("task.data.tokenizer", "--tokenizer"), told)
        self.assertRegex(told, r"broken: the token 25\d is none of the tokenizer 'bytes', which has 256: name the "
                               "tokenizer of these tokens by --tokenizer")

    def test_a_default_prompt_without_tokens_makes_no_sample(self):
        self.write("pieces/tokenizer.json", word_piece())
        self.with_data(f"source: {TEXT.replace('tok,', 'pieces,')}")
        told = self.trainer("data.yaml", *STEPS).stdout
        self.assertIn("no sample: the tokenizer has no tokens for the default of task.sample.prompt, a line end: set it",
                      " ".join(told.split()))
        self.assertIn("task.sample.prompt has no tokens", self.refused("data.yaml", "task.sample.prompt='  '", *STEPS))
        self.assertIn("sample:", self.trainer("data.yaml", "task.sample.prompt=the", *STEPS).stdout)
        self.assertNotIn("sample:", self.trainer("data.yaml", "task.sample=null", *STEPS).stdout)


if __name__ == "__main__":
    runs.main()
