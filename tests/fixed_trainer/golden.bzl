# SPDX-License-Identifier: Apache-2.0
"""golden_test: a test of a trainer's texts that no new class changes."""

load("//tests:python.bzl", "python_test")

def golden_test(name, data = [], **kwargs):
    """A python_test of NAME.py that runs the fixed trainer, whose registry does not grow.

    Args:
      name: of the test and its file.
      data: further files that it imports or reads.
      **kwargs: passed on to python_test: size, tags, ...
    """
    python_test(
        name = name,
        src = name + ".py",
        args = ["$(location //tests/fixed_trainer)"],
        data = [
            "//tests/end_to_end:runs.py",
            "//tests/fixed_trainer",
            "//tests/fixed_trainer:config.py",
        ] + data,
        **kwargs
    )
