# SPDX-License-Identifier: Apache-2.0
"""Each normalizer, pre-tokenizer, model and decoder beside the package tokenizers'."""

import unittest

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from tests.trainer.tokenizers.against_tokenizers import AgainstTokenizers
from tests.trainer.tokenizers.published_forms import charsmap

BEHAVIORS = ["removed", "isolated", "contiguous", "merged_with_previous", "merged_with_next"]
SPACE = "\u2581"


def split(pattern, behavior="isolated", invert=False):
    return pre_tokenizers.Split(Regex(pattern), behavior, invert)


PRE_TOKENIZERS = {
    "BertPreTokenizer": pre_tokenizers.BertPreTokenizer(),
    "ByteLevel": pre_tokenizers.ByteLevel(add_prefix_space=True),
    "ByteLevel, no regex": pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    "CharDelimiterSplit": pre_tokenizers.CharDelimiterSplit("a"),
    "Digits": pre_tokenizers.Digits(False),
    "Digits, each": pre_tokenizers.Digits(True),
    "FixedLength": pre_tokenizers.FixedLength(3),
    "Metaspace": pre_tokenizers.Metaspace(),
    "Metaspace, first": pre_tokenizers.Metaspace(prepend_scheme="first"),
    "Metaspace, never": pre_tokenizers.Metaspace(prepend_scheme="never", split=False),
    **{f"Punctuation, {behavior}": pre_tokenizers.Punctuation(behavior) for behavior in BEHAVIORS},
    **{f"Split, {behavior}, {invert}": split(r"\w+|[^\w\s]", behavior, invert)
       for behavior in BEHAVIORS for invert in (False, True)},
    "Split, text": pre_tokenizers.Split(" ", "merged_with_previous"),
    "Split, between": pre_tokenizers.Split("", "isolated"),
    "Split, perhaps empty": split("a*|b", "contiguous"),
    "Split, lines": split(r"\s+$|^a"),
    "Split, ends of words": split(r"\b"),
    "Split, hexadecimal": split(r"\h+|[\d']{2}?"),
    "Split, repeated": split(r"\p{N}{1,3}+|(?i:'s|k|ll)|(?m:.+x)"),
    "UnicodeScripts": pre_tokenizers.UnicodeScripts(),
    "Whitespace": pre_tokenizers.Whitespace(),
    "WhitespaceSplit": pre_tokenizers.WhitespaceSplit(),
    "Sequence": pre_tokenizers.Sequence([
        pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation()]),
        pre_tokenizers.Digits(True), pre_tokenizers.Metaspace(prepend_scheme="first")]),
}
NORMALIZERS = {
    "BertNormalizer": normalizers.BertNormalizer(),
    "BertNormalizer, accents": normalizers.BertNormalizer(False, False, True, False),
    "ByteLevel": normalizers.ByteLevel(),
    "Lowercase": normalizers.Lowercase(),
    "NFC": normalizers.NFC(),
    "NFD": normalizers.NFD(),
    "NFKC": normalizers.NFKC(),
    "NFKD": normalizers.NFKD(),
    "Nmt": normalizers.Nmt(),
    "Precompiled": normalizers.Precompiled(charsmap()),
    "Prepend": normalizers.Prepend(SPACE),
    "Replace": normalizers.Replace(" ", "__"),
    "Replace, regex": normalizers.Replace(Regex(r"\s{2,}|a"), SPACE),
    "Strip": normalizers.Strip(),
    "Strip, left": normalizers.Strip(left=True, right=False),
    "StripAccents": normalizers.StripAccents(),
    "Sequence": normalizers.Sequence([normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()]),
                                      normalizers.Replace(Regex("[0-9]+"), ""), normalizers.Strip()]),
}
DECODERS = {
    "none": None,
    "BPEDecoder": decoders.BPEDecoder(),
    "ByteFallback": decoders.ByteFallback(),
    "ByteLevel": decoders.ByteLevel(),
    "CTC": decoders.CTC(),
    "CTC, as it is": decoders.CTC(cleanup=False),
    "Fuse": decoders.Fuse(),
    "Metaspace": decoders.Metaspace(),
    "Metaspace, never": decoders.Metaspace(prepend_scheme="never"),
    "Replace": decoders.Replace(Regex("a|^"), "X"),
    "Strip": decoders.Strip("H", 1, 0),
    "WordPiece": decoders.WordPiece(),
    "WordPiece, as it is": decoders.WordPiece("a", cleanup=False),
    "Llama 2's": decoders.Sequence([decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse(),
                                    decoders.Strip(" ", 1, 0)]),
    "CTC and others": decoders.Sequence([decoders.CTC(), decoders.WordPiece(), decoders.Fuse(),
                                         decoders.Replace(" ", "_"), decoders.Metaspace()]),
    "ByteLevel and others": decoders.Sequence([decoders.ByteLevel(), decoders.Replace("a", "b"), decoders.BPEDecoder()]),
    "Fuse and others": decoders.Sequence([decoders.Fuse(), decoders.Metaspace(), decoders.ByteLevel()]),
}
TOKENS = ["[UNK]", "a", "##a", SPACE + "a", SPACE, "<0x41>", "<0xC3>", "<0xA9>", "<0xE2>", "</w>", "a</w>", " ", "  ",
          " a ", "|", "<pad>", "'s", "n't", ".", "\u00c3", "\u00a9", "\u0120a", "\u4e16", "<0x+A>", "do not", "Hx", "xH"]
MODELS = {
    "BPE": (models.BPE(unk_token="?"), trainers.BpeTrainer, {}),
    "BPE, fused": (models.BPE(unk_token="?", fuse_unk=True), trainers.BpeTrainer, {}),
    "BPE, prefix": (models.BPE(unk_token="?", continuing_subword_prefix="##"), trainers.BpeTrainer,
                    {"continuing_subword_prefix": "##"}),
    "BPE, suffix": (models.BPE(unk_token="?", end_of_word_suffix="</w>"), trainers.BpeTrainer, {"end_of_word_suffix": "</w>"}),
    "BPE, bytes": (models.BPE(unk_token="?", byte_fallback=True), trainers.BpeTrainer,
                   {"special_tokens": ["?", *(f"<0x{byte:02X}>" for byte in range(200))]}),
    "BPE, whole words": (models.BPE(unk_token="?", ignore_merges=True), trainers.BpeTrainer, {}),
    "Unigram": (models.Unigram(), trainers.UnigramTrainer, {"unk_token": "?"}),
    "WordLevel": (models.WordLevel(unk_token="?"), trainers.WordLevelTrainer, {}),
    "WordPiece": (models.WordPiece(unk_token="?", max_input_chars_per_word=20), trainers.WordPieceTrainer, {}),
}


class TokenizerParts(AgainstTokenizers):

    def words(self, pre_tokenizer, normalizer=None):
        """A tokenizer whose tokens are the pieces that it finds here."""
        tokenizer = Tokenizer(models.WordLevel(unk_token="[UNK]"))
        tokenizer.pre_tokenizer = pre_tokenizer
        if normalizer:
            tokenizer.normalizer = normalizer
        trainer = trainers.WordLevelTrainer(vocab_size=30_000, special_tokens=["[UNK]"], show_progress=False)
        tokenizer.train_from_iterator([*self.mixed[:40], *self.strings[:5000]], trainer)
        return tokenizer

    def test_pre_tokenizers(self):
        for name, part in PRE_TOKENIZERS.items():
            with self.subTest(name):
                self.compare_encoding(*self.save(name, self.words(part)), [*self.mixed, *self.strings], decodes=False)

    def test_normalizers(self):
        cuttings = {"words": pre_tokenizers.WhitespaceSplit(), "first": pre_tokenizers.Metaspace(prepend_scheme="first")}
        for name, part in NORMALIZERS.items():
            for cutting, pre_tokenizer in cuttings.items():
                with self.subTest(name, cutting=cutting):
                    self.compare_encoding(*self.save(f"{name} {cutting}", self.words(pre_tokenizer, part)),
                                          [*self.mixed, *self.strings], decodes=False)

    def test_models(self):
        for name, (model, trainer, options) in MODELS.items():
            with self.subTest(name):
                tokenizer = Tokenizer(model)
                tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
                limit = {} if name in ("Unigram", "WordLevel") else {"limit_alphabet": 300}
                tokenizer.train_from_iterator(self.training, trainer(**{"vocab_size": 2000, "show_progress": False,
                                                                        "special_tokens": ["?"], **limit, **options}))
                # The package gives a special token for its text in ordinary text.
                path, peer = self.save(name, tokenizer)
                self.compare_encoding(path, peer, [*self.mixed, *self.strings], decodes=False)

    def test_added_tokens(self):
        tokenizer = self.words(pre_tokenizers.WhitespaceSplit(), normalizers.Lowercase())
        tokenizer.add_tokens([AddedToken("Ab", lstrip=True), AddedToken("c '", rstrip=True, normalized=False),
                              AddedToken("it", single_word=True), AddedToken(" \n", normalized=False),
                              AddedToken("12", single_word=True, lstrip=True, rstrip=True),
                              AddedToken("<|end", special=True), AddedToken("</s>", special=True, lstrip=True)])
        path, peer = self.save("added", tokenizer)
        for special in (True, False):
            self.compare_encoding(path, peer, [*self.mixed, *self.strings], special=special, decodes=False)

    def test_decoders(self):
        for name, part in DECODERS.items():
            with self.subTest(name):
                tokenizer = Tokenizer(models.WordLevel({text: number for number, text in enumerate(TOKENS)}, unk_token="[UNK]"))
                if part:
                    tokenizer.decoder = part
                self.compare_decoding(*self.save(name, tokenizer))


if __name__ == "__main__":
    unittest.main()
