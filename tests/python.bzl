# SPDX-License-Identifier: Apache-2.0
"""python_test: a test written in Python, run by Debian's own interpreter."""

def python_test(name, src, data = [], args = [], python_path = None, **kwargs):
    """Runs a Python file; passes if it exits 0.

    The file runs with /usr/bin/python3 in the root of the runfiles, which is on its path.

    Args:
      name: of the test.
      src: the Python file; others that it imports go into data.
      data: files and binaries that it reads or runs.
      args: its arguments; $(location ...) of src and data work.
      python_path: a label of a file with more folders for PYTHONPATH; None for none.
      **kwargs: passed on to sh_test.
    """
    native.sh_test(
        name = name,
        srcs = [Label("//tests:run_python_test.sh")],
        args = ["$(location %s)" % python_path if python_path else "-", "$(location %s)" % src] + args,
        data = [src] + [Label("//tests:" + file) for file in ["__init__.py", "long.py", "ports.py"]] + ([python_path] if python_path else []) + data,
        **kwargs
    )

def run_test(
        name,
        trainer = "//trainer:trainer_for_tests",
        rule = python_test,
        size = "medium",
        data = []):
    """A test of NAME.py that runs a trainer as users do: end_to_end/runs.py is its base.

    It has the tag by which tools/repeat chooses tests: "processes".

    Args:
      name: of the test and its file.
      trainer: the binary; its argument.
      rule: python_test, or peer_test where it needs the Python peers.
      size: as for any test.
      data: further files that it imports or reads.
    """
    rule(
        name = name,
        size = size,
        src = name + ".py",
        args = ["$(location %s)" % trainer],
        tags = ["processes"],
        data = [
            "//tests/end_to_end:runs.py",
            trainer,
        ] + data,
    )
