# SPDX-License-Identifier: Apache-2.0
"""Pairs that a tiny model learns: a few words, of which the answer has the first in capitals."""

import json
import random

WORDS = "ship rain oak lamp stone river bread cloud wolf glass".split()


def pairs(count, seed=1):
    """(what is read, what is written)."""
    draw = random.Random(seed)
    texts = [draw.sample(WORDS, draw.randrange(1, 5)) for _ in range(count)]
    return [(" ".join(words), words[0].upper()) for words in texts]


def write_pairs(path, count, read="document", written="summary", seed=1):
    path.write_text("".join(json.dumps({read: text, written: answer}) + "\n"
                            for text, answer in pairs(count, seed)))
