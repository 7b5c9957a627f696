# SPDX-License-Identifier: Apache-2.0
"""Tokenizers of the forms that published models have, beside the package tokenizers."""

import unicodedata
import unittest

from tests.trainer.tokenizers.against_tokenizers import AgainstTokenizers
from tests.trainer.tokenizers.published_forms import FORMS

MORE = ["a <mask>  b<mask>", "x word words word", "<|user|>  hi \n", "<extra_id_0> <s> </s>", "[MASK] a", "a\n\n\n<table>",
        "f(x):\n        return  x\t\t", "<think>12345</think> [INST] e\u0301 [/INST]", "\ufb01\u0301 \u2460\r\n ``a''"]


class PublishedForms(AgainstTokenizers):

    def compare(self, form):
        path, peer = self.save(form, FORMS[form](self.training, 2000))
        texts = [*self.mixed, *self.strings, *MORE]
        with self.subTest(form, special="token"):
            self.compare_encoding(path, peer, texts)
        # In ordinary text a model gives no special token here, but may there.
        names = [token.content for token in peer.get_added_tokens_decoder().values() if token.special]
        plain = [text for text in texts if not any(name in unicodedata.normalize("NFKC", text) for name in names)]
        with self.subTest(form, special="ordinary"):
            self.compare_encoding(path, peer, plain, special=False)
        with self.subTest(form, decoding="random"):
            self.compare_decoding(path, peer)


for name in FORMS:
    setattr(PublishedForms, f"test_{name}", lambda self, name=name: self.compare(name))

if __name__ == "__main__":
    unittest.main()
