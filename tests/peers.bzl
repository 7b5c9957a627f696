# SPDX-License-Identifier: Apache-2.0
"""peer_test: a Python test that compares Phalanx with the Python packages of @peers."""

load("//tests:python.bzl", "python_test")

def peer_test(name, src, tags = [], **kwargs):
    """A python_test with the pinned torch and peers on its path; it prints what it compares.

    Without the peers the target does not build: nothing is skipped.

    Args:
      name: of the test.
      src: the Python file.
      tags: as for any test; "peers" is added.
      **kwargs: passed on to python_test: data, args, size, ...
    """
    python_test(
        name = name,
        src = src,
        python_path = "@peers//:python_path.txt",
        tags = tags + ["peers"],
        **kwargs
    )
