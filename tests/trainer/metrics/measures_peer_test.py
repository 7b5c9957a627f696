# SPDX-License-Identifier: Apache-2.0
"""Measures of random samples are those that numpy computes of all samples at once, by their definitions.

The definitions are scikit-learn's: precision_score and the like with zero_division=0, roc_auc_score, r2_score. Where
scikit-learn is installed, the measures are compared with its own functions too:

    PYTHONPATH=.:SITE_PACKAGES python3 tests/trainer/metrics/measures_peer_test.py \\
        bazel-bin/tests/trainer/metrics/print_measure
"""

import itertools
import math
import random
import subprocess
import sys
import unittest

import numpy as np

from tests.trainer.metrics import scikit_learn_measures

PRINT_MEASURE = sys.argv.pop(1)
CASES = 120
TOLERANCE = 1e-12


def accuracy(case):
    scores, targets, weights = case.counted()
    best = np.argsort(-scores, axis=1)[:, :case.top_k]
    return [np.average((best == targets[:, None]).any(axis=1), weights=weights)]


def confusion(case):
    scores, targets, weights = case.counted()
    counts = np.zeros((case.classes, case.classes))
    np.add.at(counts, (targets.astype(int), scores.argmax(axis=1)), weights)
    return counts


def share(part, whole):
    return part / whole if whole else 0.0


def class_score(case, score):
    """`score` of (right, predicted, actual)."""
    counts = confusion(case)
    right, predicted, actual = np.diag(counts), counts.sum(axis=0), counts.sum(axis=1)
    if case.average == "binary":
        return [score(right[1], predicted[1], actual[1])]
    if case.average == "micro":
        return [score(right.sum(), predicted.sum(), actual.sum())]
    return [np.mean([score(*each) for each in zip(right, predicted, actual) if each[1] + each[2] > 0])]


def auc(case):
    """The share of pairs of both classes that are in order; equal scores are half in order."""
    scores, targets, weights = case.counted()
    scores = scores[:, 1] - scores[:, 0] if scores.ndim == 2 else scores
    right = whole = 0
    for i, j in itertools.product(np.flatnonzero(targets == 1), np.flatnonzero(targets == 0)):
        pair = weights[i] * weights[j]
        whole += pair
        right += pair * (1 if scores[i] > scores[j] else 0.5 if scores[i] == scores[j] else 0)
    return [right / whole if whole else math.nan]


def r2(case):
    predictions, targets, weights = case.all()
    mean = np.average(targets, weights=weights)
    return [1 - (weights * (targets - predictions)**2).sum() / (weights * (targets - mean)**2).sum()]


DEFINITIONS = {
    "accuracy": accuracy,
    "precision": lambda case: class_score(case, lambda right, predicted, actual: share(right, predicted)),
    "recall": lambda case: class_score(case, lambda right, predicted, actual: share(right, actual)),
    "f1": lambda case: class_score(case, lambda right, predicted, actual: share(2 * right, predicted + actual)),
    "confusion": lambda case: confusion(case).ravel().tolist(),
    "auc": auc,
    "mse": lambda case: [np.average((case.predictions - case.targets)**2, weights=case.weights)],
    "mae": lambda case: [np.average(abs(case.predictions - case.targets), weights=case.weights)],
    "r2": r2,
}


class Case:
    """A metric, its options and random samples, cut into micro-batches."""

    def __init__(self, name, draw):
        self.name = name
        self.classes = draw.choice([2, 2, 3, 7]) if name not in ("auc", ) else 2
        self.average = draw.choice(["micro", "macro"] + ["binary"] * 2 * (self.classes == 2))
        self.top_k = draw.randint(1, 3) if name == "accuracy" else 1
        self.samples = draw.choice([2, 5, 40, 90])
        is_regression = name in ("mse", "mae", "r2")
        self.columns = 0 if is_regression or (name == "auc" and draw.random() < 0.5) else self.classes
        rng = np.random.default_rng(draw.randrange(1 << 30))
        shape = (self.samples, self.columns) if self.columns else (self.samples, )
        self.predictions = rng.normal(size=shape)
        if name == "auc" and draw.random() < 0.7:
            self.predictions = np.round(self.predictions)
        self.weights = np.ones(self.samples)
        if draw.random() < 0.5:
            self.weights = rng.choice([0, 0.5, 1, 2.25], size=self.samples)
            self.weights[:2] = 1
        if is_regression:
            self.targets = self.predictions + rng.normal(size=shape) + draw.choice([0, 1000])
        else:
            # Now and then a class has no sample, and some samples do not count.
            self.targets = rng.integers(0, self.classes - draw.choice([0, 0, 0, 1]), size=self.samples).astype(float)
            if draw.random() < 0.3:
                self.targets[1::4] = -100
        cuts = sorted(draw.randint(0, self.samples) for _ in range(draw.randint(0, 5)))
        self.ends = [*cuts, self.samples]

    def all(self):
        return self.predictions, self.targets, self.weights

    def counted(self):
        kept = self.targets >= 0
        return self.predictions[kept], self.targets[kept], self.weights[kept]

    def text(self):
        head = [self.name, self.classes, self.average, self.top_k, self.columns, self.samples, len(self.ends), *self.ends]
        rows = np.column_stack([self.predictions, self.targets, self.weights]).ravel()
        return " ".join([str(word) for word in head] + [repr(float(number)) for number in rows]) + "\n"


def printed(cases):
    done = subprocess.run([PRINT_MEASURE], input="".join(case.text() for case in cases), stdout=subprocess.PIPE,
                          text=True, check=True)
    return [[float(number) for number in line.split()] for line in done.stdout.splitlines()]


class MeasuresPeer(unittest.TestCase):

    def compare(self, name, definition):
        draw = random.Random(name)
        cases = [Case(name, draw) for _ in range(CASES)]
        largest = undefined = 0
        for case, values in zip(cases, printed(cases), strict=True):
            for value, expected in zip(values, definition(case), strict=True):
                if math.isnan(expected):
                    undefined += 1
                    self.assertTrue(math.isnan(value), case.text())
                    continue
                difference = abs(value - expected) / max(1, abs(expected))
                self.assertLess(difference, TOLERANCE, f"{value} and not {expected}: {case.text()}")
                largest = max(largest, difference)
        self.assertLess(undefined, CASES / 2)
        print(f"{name}: {CASES} sets of samples, {undefined} values undefined, largest difference {largest:.2g}")

    def test_measures(self):
        for name, definition in DEFINITIONS.items():
            with self.subTest(name):
                self.compare(name, definition)

    def test_scikit_learns_own_functions(self):
        if scikit_learn_measures.metrics is None:
            self.skipTest("scikit-learn is not installed")
        self.assertEqual(scikit_learn_measures.MEASURES.keys(), DEFINITIONS.keys())
        for name, definition in scikit_learn_measures.MEASURES.items():
            with self.subTest(name):
                self.compare(name, definition)


if __name__ == "__main__":
    unittest.main()
