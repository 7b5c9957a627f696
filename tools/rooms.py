# SPDX-License-Identifier: Apache-2.0
"""The room that a folder of the tree belongs to, and tables by room."""

# A room is two folders deep, and three where the first two only gather rooms.
_GATHERING = {("tests", "trainer")}


def room_of(folder):
    """tests/trainer/parallel for tests/trainer/parallel/fsdp, trainer/config for itself, tests/faults, ...

    Of other repositories' files Bazel's profiles leave out the repository: without a folder it is "external".
    """
    parts = tuple(part for part in folder.split("/") if part)
    depth = 3 if parts[:2] in _GATHERING else 2
    return "/".join(parts[:depth]) or "external"


def folder_of_target(label):
    """tests/faults for //tests/faults:soak_test; external/x/y for @x//y:z."""
    repository, _, path = label.partition("//")
    package = path.partition(":")[0]
    return f"external/{repository.removeprefix('@')}/{package}" if repository else package


def table(head, rows):
    """Lines of aligned columns: the first to the left, numbers to the right."""
    texts = [head, *([str(cell) for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*texts)]
    return ["  ".join([cells[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(cells[1:], widths[1:]))])
            for cells in texts]
