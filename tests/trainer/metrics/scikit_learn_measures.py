# SPDX-License-Identifier: Apache-2.0
"""Measures by scikit-learn's own functions, for the peers test; None where scikit-learn is not installed."""

import math

import numpy as np

try:
    from sklearn import metrics
except ImportError:
    metrics = None


def with_weight(predictions, targets, weights):
    """Samples of the weight 0 do not count here; scikit-learn still counts their classes as present."""
    kept = weights > 0
    return predictions[kept], targets[kept], weights[kept]


def accuracy(case):
    scores, targets, weights = case.counted()
    if case.top_k == 1:
        return [metrics.accuracy_score(targets, scores.argmax(axis=1), sample_weight=weights)]
    if case.classes == 2:  # scikit-learn's top_k_accuracy_score takes one score a sample of two classes
        return [1.0]
    return [metrics.top_k_accuracy_score(targets, scores, k=case.top_k, sample_weight=weights,
                                         labels=range(case.classes))]


def confusion(case):
    scores, targets, weights = case.counted()
    return metrics.confusion_matrix(targets, scores.argmax(axis=1), sample_weight=weights,
                                    labels=range(case.classes)).ravel().tolist()


def of_classes(function):
    def measure(case):
        scores, targets, weights = with_weight(*case.counted())
        return [function(targets, scores.argmax(axis=1), sample_weight=weights, average=case.average,
                         pos_label=1, zero_division=0)]
    return measure


def auc(case):
    scores, targets, weights = with_weight(*case.counted())
    if len(np.unique(targets)) < 2:
        return [math.nan]
    scores = scores[:, 1] - scores[:, 0] if scores.ndim == 2 else scores
    return [metrics.roc_auc_score(targets, scores, sample_weight=weights)]


def of_values(function):
    def measure(case):
        predictions, targets, weights = case.all()
        return [function(targets, predictions, sample_weight=weights)]
    return measure


MEASURES = metrics and {
    "accuracy": accuracy,
    "precision": of_classes(metrics.precision_score),
    "recall": of_classes(metrics.recall_score),
    "f1": of_classes(metrics.f1_score),
    "confusion": confusion,
    "auc": auc,
    "mse": of_values(metrics.mean_squared_error),
    "mae": of_values(metrics.mean_absolute_error),
    "r2": of_values(metrics.r2_score),
}
