# SPDX-License-Identifier: Apache-2.0
"""Tokens and decoded texts of SentencePiece's models beside the package sentencepiece's."""

import importlib.util
import io
import shutil
import sys
import tempfile
import unittest
from pathlib import Path

import sentencepiece

from tests.trainer.tokenizers.samples import (MIXED, STRINGS, decode, encode, mixed_text, pieces, random_strings,
                                              random_tokens)

PRINT_ENCODING, PRINT_DECODING = sys.argv[1:3]
del sys.argv[1:3]
SAMPLES = Path(__file__).parent / "samples.py"
DATA = Path("/work/shared/data/sentencepiece")
T5 = {"model_type": "unigram", "normalization_rule_name": "nmt_nfkc", "pad_id": 0, "eos_id": 1, "unk_id": 2,
      "bos_id": -1, "user_defined_symbols": [f"<extra_id_{number}>" for number in range(9)]}
TRAINED = {
    "t5": T5,
    "unigram, bytes": {"model_type": "unigram", "byte_fallback": True},
    "bpe": {"model_type": "bpe"},
    "bpe, bytes": {"model_type": "bpe", "byte_fallback": True, "normalization_rule_name": "identity",
                   "remove_extra_whitespaces": False},
    "every space": {"model_type": "bpe", "remove_extra_whitespaces": False, "byte_fallback": True,
                    "allow_whitespace_only_pieces": True, "split_digits": True},
    "no prefix": {"model_type": "unigram", "add_dummy_prefix": False, "remove_extra_whitespaces": False},
    "no prefix, fewer spaces": {"model_type": "bpe", "add_dummy_prefix": False, "byte_fallback": True},
    "suffix": {"model_type": "bpe", "treat_whitespace_as_suffix": True, "unk_surface": "?"},
}


def train(options):
    """A model that the package trains on code and words of many scripts."""
    words = mixed_text(300_000).split()[::400]
    lines = [line for line in SAMPLES.read_text().splitlines() if line.strip()] + [
        " ".join(words[begin:begin + 9]) for begin in range(0, len(words), 9)]
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=model, vocab_size=2000, character_coverage=0.98,
        hard_vocab_limit=options["model_type"] == "bpe", num_threads=1, minloglevel=2, **options)
    return model.getvalue()


class AgainstSentencePiece(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(scratch.cleanup)
        cls.folder = Path(scratch.name)
        cls.mixed = pieces(mixed_text(MIXED))
        cls.strings = list(random_strings(STRINGS))

    def compare(self, model, more=()):
        """On a model file: mixed text, random strings and random tokens."""
        peer = sentencepiece.SentencePieceProcessor(model_file=str(model))
        for texts in (self.mixed, self.strings, list(more)):
            for text, (tokens, decoded) in zip(texts, encode(PRINT_ENCODING, model, texts), strict=True):
                expected = peer.encode(text)
                if tokens != expected:
                    self.fail(f"{model.name}: {text[:200]!r}: {tokens[:40]} for {expected[:40]}")
                self.assertEqual(decoded, peer.decode(expected))
        lists = list(random_tokens(peer.get_piece_size(), STRINGS))
        for tokens, decoded in zip(lists, decode(PRINT_DECODING, model, lists), strict=True):
            self.assertEqual(decoded, peer.decode(tokens), tokens)
        return peer

    def copied(self, model):
        """Under a name that ends in .model."""
        return Path(shutil.copy(model, self.folder / f"{model.name}.model"))

    def test_mistrals(self):
        data = Path(importlib.util.find_spec("mistral_common").origin).parent / "data"
        for name in ("tokenizer.model.v1", "mistral_instruct_tokenizer_240323.model.v3"):
            with self.subTest(name):
                self.compare(self.copied(data / name))

    def test_sentencepieces_own(self):
        if not DATA.is_dir():
            self.skipTest(f"{DATA} is not there")
        self.compare(self.copied(DATA / "test_model.model"), (DATA / "botchan.txt").read_text().splitlines())

    def test_trained(self):
        for name, options in TRAINED.items():
            with self.subTest(name):
                model = self.folder / f"{name}.model"
                model.write_bytes(train(options))
                self.compare(model)

    def test_control_tokens(self):
        model = self.folder / "control.model"
        model.write_bytes(train(TRAINED["bpe, bytes"]))
        peer = sentencepiece.SentencePieceProcessor(model_file=str(model))
        (tokens, decoded), = encode(PRINT_ENCODING, model, ["one</s>two <s>"], "special")
        self.assertEqual(tokens, [*peer.encode("one"), peer.eos_id(), *peer.encode("two "), peer.bos_id()])
        self.assertEqual(decoded, peer.decode(tokens))

    def test_bytes_that_are_no_utf8(self):
        model = self.folder / "bytes.model"
        model.write_bytes(train(TRAINED["bpe, bytes"]))
        peer = sentencepiece.SentencePieceProcessor(model_file=str(model))
        texts = [b"a\xc3b", b"\xe2\x82", b"\xff\xed\xa0\x80 \xf0\x9f\x98"]
        for text, (tokens, _) in zip(texts, encode(PRINT_ENCODING, model, texts), strict=True):
            self.assertEqual(tokens, peer.encode(text.decode(errors="replace")))


if __name__ == "__main__":
    unittest.main()
