# SPDX-License-Identifier: Apache-2.0
"""A memory cgroup of a test's own, where this process may make one."""

import contextlib
import os
import pathlib
import unittest

ROOT = pathlib.Path("/sys/fs/cgroup")


def own_group(controllers):
    """This process's group in the tree that /proc/self/cgroup calls so."""
    for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines():
        _, names, path = line.split(":", 2)
        if controllers in names.split(","):
            return path.lstrip("/")
    return None


def candidates():
    """Folder of a new group, and the file that takes its limit: of the first version, the second."""
    name = f"phalanx-test-{os.getpid()}"
    first = own_group("memory")
    if first is not None:
        yield ROOT / "memory" / first / name, "memory.limit_in_bytes"
    second = own_group("")
    if second is not None:
        yield ROOT / second / name, "memory.max"


@contextlib.contextmanager
def limited(limit_bytes):
    """Gives what a child calls before it becomes another program, to be in the group; skips the
    test where there can be none."""
    reasons = []
    for folder, file in candidates():
        try:
            folder.mkdir()
        except OSError as error:
            reasons.append(str(error))
            continue
        try:
            try:
                (folder / file).write_text(str(limit_bytes))
            except OSError as error:
                reasons.append(str(error))
                continue
            yield lambda group=folder: (group / "cgroup.procs").write_text(str(os.getpid()))
            return
        finally:
            folder.rmdir()
    raise unittest.SkipTest("no memory cgroup can be made here: " + "; ".join(reasons))
