# SPDX-License-Identifier: Apache-2.0
"""What compute-sanitizer found: kinds of errors, each with what launched the kernel and what freed its memory."""

import collections
import re

from kit import locked

SANITIZER = "sanitizer.txt"  # the output of the items that it watches, to come back
KEPT_LETTERS = 256 << 10  # of a rank
_LINE = re.compile(r"^========= ?(.*)$")
_FRAME = re.compile(r"\s+Host Frame: *(.*?) *\[0x[0-9a-f]+\] in (\S+)")
_DEVICE = re.compile(r"\s+at (\S.*?)(?:\+0x[0-9a-f]+)?$")
_NO_FINDING = ("COMPUTE-SANITIZER", "ERROR SUMMARY", "LEAK SUMMARY", "Target application", "Warning", "Internal",
               "Error: process")
_LAUNCHES = re.compile(r"at::native::|at::_ops::|nccl[A-Z]|ncclDevKernel")


def errors_in(output):
    """What compute-sanitizer counts; None where it says nothing."""
    counts = re.findall(r"ERROR SUMMARY: (\d+) error", output)
    return sum(map(int, counts)) if counts else None


def shortened(name):
    """A function's name without its type, arguments and parameters."""
    text, depth = "", 0
    for letter in name.replace("(anonymous namespace)::", ""):
        if letter == "(" and depth == 0:
            break
        depth += (letter == "<") - (letter == ">")
        if depth == 0 and letter != ">":
            text += letter
    words = text.split()
    return re.sub(r"::(call|redispatch)$", "", words[-1]) if words else ""


def kind_of(header):
    """Without sizes and addresses."""
    return re.split(r" (?:of size|on|at|by|reported) ", header)[0].rstrip(".: ")


class Finding:
    def __init__(self, header):
        self.kind, self.kernel = kind_of(header), None
        self._stacks = []

    def take(self, line):
        if "Saved host backtrace" in line or "Host Frame" in line and not self._stacks:
            self._stacks.append([])
        if match := _FRAME.match(line):
            self._stacks[-1].append(shortened(match[1]))
        elif not self._stacks and self.kernel is None and (match := _DEVICE.match(line)):
            self.kernel = shortened(match[1])

    def __str__(self):
        launch = self._stacks[0] if self._stacks else []
        kernel = self.kernel or next(filter(_LAUNCHES.match, launch), None) or "no known kernel"
        operator = next((name for name in launch if name.startswith("at::_ops::")), None)
        text = f"{self.kind}: {kernel}"
        if operator and operator != kernel:
            text += f" of {operator}"
        for word, stack in zip((" in ", ", freed in "), self._stacks):
            if ours := next((name for name in stack if name.startswith("phalanx::")), None):
                text += word + ours
        return text


def findings(output):
    """How often each kind of finding is there, the most frequent first."""
    found = []
    for line in output.splitlines():
        match = _LINE.match(line)
        if not match:
            continue
        text = match[1]
        if not text.strip():
            continue
        if not text.startswith(" "):
            found.append(None if text.startswith(_NO_FINDING) else Finding(text))
        elif found and found[-1]:
            found[-1].take(text)
    return dict(collections.Counter(str(finding) for finding in found if finding).most_common())


def keep_output(kit, item, outputs):
    """Adds what the ranks wrote under compute-sanitizer to sanitizer.txt."""
    with locked(kit.work / SANITIZER), (kit.out / SANITIZER).open("a") as file:
        for rank, output in enumerate(outputs):
            print(f"==== {item}, rank {rank}: {len(output)} letters\n{output[:KEPT_LETTERS]}", file=file)
