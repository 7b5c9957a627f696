# SPDX-License-Identifier: Apache-2.0
"""Texts, and what Phalanx makes of them, for comparisons with other tokenizers."""

import random
import struct
import subprocess
import unicodedata
from pathlib import Path

from tests.long import is_long

# Characters of mixed text and number of random strings that each tokenizer is compared on.
MIXED, STRINGS = (10_000_000, 100_000) if is_long() else (500_000, 5_000)


def encode(program, tokenizer, texts, *options):
    """The tokens and the decoded text of each text, by print_encoding."""
    data = [text if isinstance(text, bytes) else text.encode() for text in texts]
    packed = b"".join(struct.pack("<q", len(text)) + text for text in data)
    out = subprocess.run([program, tokenizer, *options], input=packed, stdout=subprocess.PIPE, check=True).stdout
    found, place = [], 0
    for _ in texts:
        (count,) = struct.unpack_from("<q", out, place)
        tokens = list(struct.unpack_from(f"<{count}i", out, place + 8))
        place += 8 + 4 * count
        (size,) = struct.unpack_from("<q", out, place)
        found.append((tokens, out[place + 8:place + 8 + size].decode()))
        place += 8 + size
    return found


def decode(program, tokenizer, lists):
    """The text of each list of tokens, by print_decoding."""
    packed = b"".join(struct.pack(f"<q{len(tokens)}i", len(tokens), *tokens) for tokens in lists)
    out = subprocess.run([program, tokenizer], input=packed, stdout=subprocess.PIPE, check=True).stdout
    found, place = [], 0
    for _ in lists:
        (size,) = struct.unpack_from("<q", out, place)
        found.append(out[place + 8:place + 8 + size].decode())
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


def random_tokens(size, count):
    """Lists of tokens of a vocabulary, some of them runs of its first, where byte tokens are."""
    draw = random.Random(17)
    for number in range(count):
        yield [draw.randrange(min(size, 300) if number % 2 else size) for _ in range(draw.randint(0, 30))]


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
                 "\u4e16\u754c\u3042 ", "\U0001F600\u200d\ufe0f", "\u180e\u0085\u00a0\u2028 x", "<|endoftext|>", "ab</s> <s><unk>", "\u2581\u2581a  b", "<0x0A>F<"]
    for _ in range(count):
        if draw.random() < 0.2:
            yield "".join(chr(draw.choice([draw.randrange(0x3000), draw.randrange(0xE000, 0x20000)]))
                          for _ in range(draw.randint(0, 12)))
        else:
            yield "".join(draw.choices(draw.choice(alphabets), k=draw.randint(0, 40)))


def pieces(text, size=200_000):
    return [text[begin:begin + size] for begin in range(0, len(text), size)]
