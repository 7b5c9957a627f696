# SPDX-License-Identifier: Apache-2.0
"""Span corruption beside the definition that T5 published: lengths, sentinels, spans and their statistics.

The peer is numpy code after the description in t5/data/preprocessors.py: random_spans_helper,
random_spans_noise_mask, noise_span_to_unique_sentinel and nonnoise_span_to_unique_sentinel.
"""

import subprocess
import sys
import unittest

import numpy

PRINT_CORRUPTION = sys.argv.pop(1)
SENTINEL, END = 32099, 1


def lengths_for(input_length, density, mean):
    """(tokens, inputs, targets), counted up as random_spans_helper does."""
    def lengths(tokens):
        noise = int(round(tokens * density))
        spans = int(round(noise / mean))
        return tokens - noise + spans + 1, noise + spans + 1

    tokens = input_length
    while lengths(tokens + 1)[0] <= input_length:
        tokens += 1
    inputs, targets = lengths(tokens)
    if density == 0.5 and targets > inputs:
        tokens, targets = tokens - 1, targets - 1
    return tokens, inputs, targets


def peer_mask(random, length, density, mean):
    """random_spans_noise_mask: a shuffled row of marks cuts noise, and another one what is between."""
    noise = min(max(int(numpy.round(length * density)), 1), length - 1)
    spans = max(int(numpy.round(min(noise, length - noise) / mean)), 1)

    def segments(items):
        marks = numpy.arange(items - 1) < spans - 1
        random.shuffle(marks)
        return numpy.bincount(numpy.cumsum(numpy.concatenate([[0], marks])).astype(int), minlength=spans)

    between, noisy = segments(length - noise), segments(noise)
    return numpy.repeat(numpy.arange(2 * spans) % 2 == 1, numpy.stack([between, noisy], 1).reshape(-1))


def with_sentinels(tokens, mask):
    """The tokens with one sentinel, counted down, in place of each span of the mask; then the end."""
    first = mask & ~numpy.concatenate([[False], mask[:-1]])
    sentinels = SENTINEL + 1 - numpy.cumsum(first)
    return [*numpy.where(first, sentinels, tokens)[~(mask & ~first)], END]


def span_lengths(mask):
    changes = numpy.flatnonzero(numpy.diff(mask.astype(int), prepend=0, append=0))
    return changes[1::2] - changes[::2]


class SpanCorruption(unittest.TestCase):

    def print(self, *cases):
        """(lengths, [(input, target)]) of each case."""
        output = subprocess.run([PRINT_CORRUPTION, *(" ".join(map(str, case)) for case in cases)], check=True,
                                capture_output=True, text=True).stdout
        lines = iter([[int(word) for word in line.split()] for line in output.splitlines()])
        return [(tuple(next(lines)), [(next(lines), next(lines)) for _ in range(case[3])]) for case in cases]

    def test_lengths(self):
        cases = [(length, density, mean, 0) for density in (0.15, 0.3, 0.5) for mean in (3, 3.5, 10)
                 for length in (*range(20, 60), 512, 1024)]
        for (length, density, mean, _), (lengths, _) in zip(cases, self.print(*cases), strict=True):
            tokens, inputs, targets = lengths_for(length, density, mean)
            self.assertEqual((lengths[0], lengths[2]), (tokens, targets), (length, density, mean))

    def test_sentinels_and_spans(self):
        cases = [(114, 0.15, 3, 40), (512, 0.15, 3, 20), (512, 0.5, 32, 10), (37, 0.3, 2, 40)]
        for (_, density, mean, _), ((length, *_), samples) in zip(cases, self.print(*cases), strict=True):
            tokens = numpy.arange(2, length + 2)
            numbers = []
            for found_input, found_target in samples:
                mask = ~numpy.isin(tokens, found_input)
                self.assertEqual(found_input, with_sentinels(tokens, mask))
                self.assertEqual(found_target, with_sentinels(tokens, ~mask))
                numbers.append((mask.sum(), len(span_lengths(mask)), mask[0], mask[-1]))
            peer = peer_mask(numpy.random.default_rng(1), length, density, mean)
            self.assertEqual(set(numbers), {(peer.sum(), len(span_lengths(peer)), peer[0], peer[-1])})

    def test_statistics(self):
        """How often a token is noise, by its place, and how long spans are."""
        draws = 4000
        ((length, *_), samples), = self.print((60, 0.15, 3, draws))
        tokens = numpy.arange(2, length + 2)
        ours = numpy.array([~numpy.isin(tokens, found) for found, _ in samples])
        random = numpy.random.default_rng(2)
        peers = numpy.array([peer_mask(random, length, 0.15, 3) for _ in range(draws)])
        deviation = numpy.sqrt(2 * peers.mean(0) * (1 - peers.mean(0)) / draws)
        self.assertLess(numpy.abs(ours.mean(0) - peers.mean(0))[deviation > 0].max(), 5 * deviation.max())
        spans = [numpy.bincount(numpy.concatenate([span_lengths(mask) for mask in masks]), minlength=12)
                 for masks in (ours, peers)]
        self.assertLess(numpy.abs(spans[0] - spans[1]).max(), 5 * numpy.sqrt(2 * spans[1].max()))


if __name__ == "__main__":
    unittest.main(verbosity=2)
