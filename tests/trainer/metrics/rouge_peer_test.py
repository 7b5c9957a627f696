# SPDX-License-Identifier: Apache-2.0
"""ROUGE scores are those of Google's rouge_score, which Hugging Face's evaluate uses."""

import random
import re
import struct
import subprocess
import sys
import unittest

from rouge_score import rouge_scorer, tokenize

PRINT_ROUGE = sys.argv.pop(1)
KINDS = ["rouge1", "rouge2", "rougeL", "rougeLsum"]
TOLERANCE = 1e-12
PAIRS = 600
ASCII_SPACE = " \t\n\v\f\r"
# Few words, so that texts have many longest common subsequences; the last ones are no words, or several.
WORDS = ["a", "A", "the", "The", "cat", "CAT", "b2", "7", "2024", "na\u00efve", "NA\u00cfVE", "\u00dcber",
         "stra\u00dfe", "5\u212a", "5k", "\u0130zmir", "i", "\u0131", "\u017fo", "\u03a3\u03a3", "\u4e16\u754c",
         "\U0001F600", "e\u0301", "\ufb01", "it's", "3.14", "x_y", "--", "..."]
SPACES = [" ", " ", " ", " ", " ", "\n", "\n\n", ", ", ". ", "\t", "\r\n", "\u2028", "\u00a0", "\x0b", "\x1c", "\x85",
          "\0", ""]


def printed(pairs):
    """What print_rouge prints for each text and reference, as lists of numbers."""
    texts = [text.encode() for pair in pairs for text in pair]
    data = b"".join(struct.pack("q", len(text)) + text for text in texts)
    done = subprocess.run([PRINT_ROUGE], input=data, stdout=subprocess.PIPE, check=True)
    return [[float(number) for number in line.split()] for line in done.stdout.decode().splitlines()]


def random_text(draw, words, most):
    return "".join(draw.choice(words) + draw.choice(SPACES) for _ in range(draw.randint(0, most)))


def changed(draw, text, words):
    """A text with pieces of another left out, moved and put in."""
    pieces = [piece for piece in re.split(r"(\s+)", text) if draw.random() > 0.15]
    for _ in range(draw.randint(0, 6)):
        begin, end = sorted(draw.randrange(len(pieces) + 1) for _ in range(2))
        moved = pieces[begin:end][:8]
        del pieces[begin:begin + len(moved)]
        at = draw.randrange(len(pieces) + 1)
        pieces[at:at] = moved + draw.choices(words + SPACES, k=draw.randint(0, 2))
    return "".join(pieces)


def random_pairs(count):
    draw = random.Random(5)
    for number in range(count):
        words = draw.sample(WORDS, draw.randint(2, len(WORDS)))
        most = 400 if number % 50 == 0 else 60
        reference = random_text(draw, words, most)
        if number % 10 == 1:
            ends = draw.choices(ASCII_SPACE, k=3)
            yield reference, ends[0] + reference + "".join(ends[1:])
        elif number % 3 == 0:
            yield random_text(draw, words, most), reference
        else:
            yield changed(draw, reference, words), reference


class RougePeer(unittest.TestCase):

    def compare(self, pairs):
        """Fails if a score differs; returns the largest difference."""
        scorer = rouge_scorer.RougeScorer(KINDS, use_stemmer=False)
        largest = 0
        for (text, reference), (*scores, is_match) in zip(pairs, printed(pairs), strict=True):
            expected = scorer.score(reference, text)
            for kind, score in zip(KINDS, scores, strict=True):
                difference = abs(score - expected[kind].fmeasure)
                self.assertLess(difference, TOLERANCE, f"{kind} of {text!r} for {reference!r}: {score}")
                largest = max(largest, difference)
            self.assertEqual(bool(is_match), text.strip(ASCII_SPACE) == reference.strip(ASCII_SPACE), (text, reference))
        return largest

    def test_random_texts(self):
        pairs = list(random_pairs(PAIRS))
        largest = self.compare(pairs)
        for kind, column in zip(KINDS, zip(*printed(pairs))):
            between = sum(0 < score < 1 for score in column)
            self.assertGreater(between, PAIRS / 2, kind)
            print(f"{kind}: {between} of {PAIRS} scores between 0 and 1, {len(set(column))} different ones")
        print(f"{PAIRS} pairs of texts, largest difference {largest}")

    def test_few_words_in_many_lines(self):
        draw = random.Random(6)
        pairs = [tuple("".join(draw.choices("abc \n", [3, 3, 3, 9, 2], k=draw.randint(0, 80))) for _ in range(2))
                 for _ in range(PAIRS)]
        print(f"{PAIRS} pairs of one-letter words, largest difference {self.compare(pairs)}")

    def test_every_character(self):
        """Each character within a word splits it, or belongs to it, as in rouge_score."""
        characters = [chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000]
        pairs = []
        for begin in range(0, len(characters), 64):
            text = " ".join(f"x{character}y" for character in characters[begin:begin + 64])
            pairs.append((text, " ".join(tokenize.tokenize(text, None))))
        for (text, reference), scores in zip(pairs, printed(pairs), strict=True):
            self.assertEqual(scores[:3], [1, 1, 1], (text, reference))
        print(f"{len(characters)} characters split words as in rouge_score")


if __name__ == "__main__":
    unittest.main()
