# SPDX-License-Identifier: Apache-2.0
"""A small tokenizer.json: byte-level BPE of the 256 bytes, "he", "the", " fox"'s first two characters, and special
tokens."""

import json

END = 259  # the first special token


def visible(byte):
    """The character that stands for a byte in a vocabulary of byte-level BPE."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [each for each in range(256) if each not in printable]
    return chr(byte if byte in printable else 256 + others.index(byte))


def tokenizer_json(special=("<|endoftext|>",)):
    vocabulary = {visible(byte): byte for byte in range(256)}
    vocabulary |= {"he": 256, "the": 257, visible(32) + "f": 258}
    return json.dumps({
        "version": "1.0", "truncation": None, "padding": None, "normalizer": None, "post_processor": None,
        "added_tokens": [{"id": END + place, "content": text, "single_word": False, "lstrip": False,
                          "rstrip": False, "normalized": False, "special": True}
                         for place, text in enumerate(special)],
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True},
        "decoder": {"type": "ByteLevel"},
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "vocab": vocabulary,
                  "merges": ["h e", "t he", visible(32) + " f"]}})
