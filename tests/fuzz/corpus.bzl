# SPDX-License-Identifier: Apache-2.0
"""corpus_test: a fuzz target over the inputs that fuzzing found worth keeping, by any compiler."""

def corpus_test(target, deps):
    """Runs TARGET_fuzzer.cc over corpus/TARGET.txt.

    Args:
      target: the name that tools/fuzz knows it by.
      deps: what the target needs.
    """
    native.cc_test(
        name = target + "_corpus_test",
        size = "medium",
        srcs = [
            "//tests/fuzz:corpus_test.cc",
            target + "_fuzzer.cc",
        ],
        args = ["$(location corpus/%s.txt)" % target],
        data = ["corpus/%s.txt" % target],
        visibility = ["//tests/fuzz:__pkg__"],
        deps = deps + [
            "//tests/fuzz",
            "@gtest//:gtest",
        ],
    )
