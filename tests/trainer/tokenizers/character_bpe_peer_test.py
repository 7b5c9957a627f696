# SPDX-License-Identifier: Apache-2.0
"""Tokens and decoded texts of BPE of characters beside the package tokenizers.

The vocabularies: Llama 2's form, from the package wordllama, with other normalizers, pre-tokenizers and decoders
too; and one that tokenizers trains here, whose tokens go across words.
"""

import importlib.util
import json
import sys
import tempfile
import unittest
from pathlib import Path

import tokenizers
from tokenizers import decoders, models, pre_tokenizers, trainers

from tests.trainer.tokenizers.samples import (MIXED, STRINGS, decode, encode, mixed_text, pieces, random_strings,
                                              random_tokens)

PRINT_ENCODING, PRINT_DECODING = sys.argv[1:3]
del sys.argv[1:3]
REPLACE = {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}
SHOW_SPACES = {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "}


def metaspace(**options):
    return {"type": "Metaspace", "replacement": "\u2581", **options}


def changed_metaspace(model=None, **options):
    return {"normalizer": None, "pre_tokenizer": metaspace(**options), "decoder": metaspace(**options),
            "model": model or {}}


CHANGES = {
    "llama": {},
    "gemma": {"normalizer": REPLACE,
              "pre_tokenizer": {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious",
                                "invert": False},
              "decoder": {"type": "Sequence",
                          "decoders": [SHOW_SPACES, {"type": "ByteFallback"}, {"type": "Fuse"}]}},
    "always": changed_metaspace(prepend_scheme="always", split=True),
    "first": changed_metaspace(prepend_scheme="first", split=False),
    "never": changed_metaspace(prepend_scheme="never", split=True, model={"ignore_merges": True}),
    "of old": changed_metaspace(add_prefix_space=True, str_rep="\u2581"),
    "unknown": {"model": {"byte_fallback": False}},
    "every unknown": {"model": {"byte_fallback": False, "fuse_unk": False}},
    "whole": {"model": {"ignore_merges": True}},
}


class AgainstTokenizers(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(scratch.cleanup)
        cls.folder = Path(scratch.name)
        cls.mixed = pieces(mixed_text(MIXED))
        cls.strings = list(random_strings(STRINGS))
        folder = Path(importlib.util.find_spec("wordllama").origin).parent / "tokenizers"
        cls.llama = json.loads((folder / "l2_supercat_tokenizer_config.json").read_text())

    def compare(self, name, file):
        path = self.folder / name / "tokenizer.json"
        path.parent.mkdir()
        path.write_text(json.dumps(file))
        peer = tokenizers.Tokenizer.from_file(str(path))
        # With ignore_merges the package makes a word "<s>" the special token even where that is ordinary text.
        marks = [token["content"] for token in file["added_tokens"]] if file["model"].get("ignore_merges") else []
        ordinary = [text for text in self.strings if not any(mark in text for mark in marks)]
        for special in (False, True):
            peer.encode_special_tokens = not special
            for texts in (self.strings,) if special else (self.mixed, ordinary):
                encodings = peer.encode_batch(texts, add_special_tokens=False)
                found = encode(PRINT_ENCODING, path, texts, *(["special"] if special else []))
                for text, expected, (tokens, decoded) in zip(texts, encodings, found, strict=True):
                    if tokens != expected.ids:
                        self.fail(f"{name}: {text[:200]!r}: {tokens[:40]} for {expected.ids[:40]}")
                    self.assertEqual(decoded, peer.decode(expected.ids, skip_special_tokens=False))
        lists = list(random_tokens(peer.get_vocab_size(), STRINGS))
        for tokens, decoded in zip(lists, decode(PRINT_DECODING, path, lists), strict=True):
            self.assertEqual(decoded, peer.decode(tokens, skip_special_tokens=False), tokens)

    def test_llama_2_and_its_relatives(self):
        for name, change in CHANGES.items():
            with self.subTest(name):
                model = {**self.llama["model"], **change.get("model", {})}
                self.compare(name, {**self.llama, **change, "model": model})

    def test_added_tokens(self):
        added = [*self.llama["added_tokens"],
                 *({"id": 32000 + number, "content": text, "single_word": False, "lstrip": False, "rstrip": False,
                    "normalized": False, "special": False} for number, text in enumerate([" a", "ab  ", "\n\n"]))]
        self.compare("added", {**self.llama, "added_tokens": added})

    def test_tokens_across_words(self):
        peer = tokenizers.Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True))
        peer.pre_tokenizer = pre_tokenizers.Metaspace(split=False)
        peer.decoder = decoders.Metaspace()
        trainer = trainers.BpeTrainer(vocab_size=2000, show_progress=False, special_tokens=["<unk>", "</s>"],
                                      limit_alphabet=300)
        peer.train_from_iterator([line for line in mixed_text(200_000).splitlines()], trainer)
        self.assertTrue(any("\u2581" in text.lstrip("\u2581") for text in peer.get_vocab()), "none goes across words")
        self.compare("across", json.loads(peer.to_str()))


if __name__ == "__main__":
    unittest.main()
