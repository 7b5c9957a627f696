# SPDX-License-Identifier: Apache-2.0
"""A tokenizer.json read by Phalanx and by the package tokenizers: the same tokens, the same texts."""

import sys
import tempfile
import unicodedata
import unittest
from collections import Counter
from pathlib import Path

import tokenizers

from tests.long import is_long
from tests.trainer.tokenizers.samples import decode, encode, mixed_text, pieces, random_strings, random_tokens

PRINT_ENCODING, PRINT_DECODING = sys.argv[1:3]
del sys.argv[1:3]
# Characters of mixed text, and number of random strings.
MIXED, STRINGS = (10_000_000, 100_000) if is_long() else (60_000, 400)


def known(text):
    """Without the characters that are newer than the tables here: docs/newer_characters.md."""
    return "".join(c for c in text if unicodedata.category(c) != "Cn")


class AgainstTokenizers(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(scratch.cleanup)
        cls.folder = Path(scratch.name)
        cls.mixed = pieces(known(mixed_text(MIXED))[:MIXED], 20_000)
        cls.strings = [known(text) for text in random_strings(STRINGS)]
        # What tokenizers are trained on, whatever the size of the sample: few enough characters for small vocabularies.
        text = known(mixed_text(400_000))[-200_000:]
        usual = {character for character, _ in Counter(text).most_common(500)}
        cls.training = ["".join(c for c in line if c in usual) for line in text.splitlines()]

    def save(self, name, tokenizer):
        path = Path(tempfile.mkdtemp(prefix=name, dir=self.folder)) / "tokenizer.json"
        tokenizer.save(str(path))
        return path, tokenizers.Tokenizer.from_file(str(path))

    def compare_encoding(self, path, peer, texts, special=True, decodes=True):
        peer.encode_special_tokens = not special
        encodings = peer.encode_batch(texts, add_special_tokens=False)
        found = encode(PRINT_ENCODING, path, texts, *(["special"] if special else []))
        for text, expected, (tokens, decoded) in zip(texts, encodings, found, strict=True):
            if tokens != expected.ids:
                place = next((i for i, pair in enumerate(zip(tokens, expected.ids)) if pair[0] != pair[1]), 0)
                self.fail(f"{text[:200]!r}, from token {place} on: {tokens[place:place + 20]} for "
                          f"{expected.ids[place:place + 20]}")
            if decodes and decoded != (text := peer.decode(expected.ids, skip_special_tokens=False)):
                self.fail(f"{tokens[:40]}: {decoded[:200]!r} for {text[:200]!r}")

    def compare_decoding(self, path, peer, size=None):
        lists = list(random_tokens(size or peer.get_vocab_size(), STRINGS))
        for tokens, decoded in zip(lists, decode(PRINT_DECODING, path, lists), strict=True):
            self.assertEqual(decoded, peer.decode(tokens, skip_special_tokens=False), tokens)
