"""peer_test: a Python test that compares Phalanx with the Python packages of @peers."""

def peer_test(name, src, data = [], args = [], size = "medium", tags = [], **kwargs):
    """Runs a Python file with the pinned torch and peers on its path; passes if it exits 0.

    The file runs with /usr/bin/python3 in the runfiles' root, with OMP_NUM_THREADS=1, and prints
    the values it compares. Without the peers the target does not build: nothing is skipped.

    Args:
      name: of the test.
      src: the Python file; others that it imports go into data.
      data: files and binaries that it reads or runs.
      args: its arguments; $(location ...) of src and data work.
      size: as for any test.
      tags: as for any test; "peers" is added.
      **kwargs: passed on to sh_test.
    """
    native.sh_test(
        name = name,
        size = size,
        srcs = [Label("//tests:run_peer_test.sh")],
        args = ["$(location %s)" % Label("@peers//:python_path.txt"), "$(location %s)" % src] + args,
        data = [src, Label("@peers//:python_path.txt")] + data,
        tags = tags + ["peers"],
        **kwargs
    )
