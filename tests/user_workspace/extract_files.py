# SPDX-License-Identifier: Apache-2.0
"""Writes the files that a Markdown document shows, so that a test can follow it to the letter.

    extract_files.py DOCUMENT.md FOLDER [NAME=VALUE ...]

A fenced block whose info string holds `file=PATH` (```cpp file=my_task/task.cc) is that file's
content; a second block of the same path is appended. Each NAME in the text is replaced by VALUE,
and must occur. Prints the paths written, one a line.
"""

import pathlib
import re
import sys

_FENCE = re.compile(r"^(?P<fence>`{3,})\w*[ ]+(?:\S+[ ]+)*?file=(?P<path>\S+)[^\n]*\n"
                    r"(?P<text>.*?)^(?P=fence)[ ]*$", re.MULTILINE | re.DOTALL)


class ExtractError(Exception):
    """The document cannot be followed as it stands."""


def extract(markdown):
    """The files of a document: path to text, in the document's order."""
    files = {}
    for block in _FENCE.finditer(markdown):
        path = pathlib.PurePosixPath(block["path"])
        if path.is_absolute() or ".." in path.parts:
            raise ExtractError(f"file={path} leaves the folder")
        files[str(path)] = files.get(str(path), "") + block["text"]
    if len(re.findall(r"^`{3,}\w+[ ].*file=", markdown, re.MULTILINE)) != len(
            _FENCE.findall(markdown)):
        raise ExtractError("a block with file= is not closed")
    if not files:
        raise ExtractError("the document shows no file: no block says file=PATH")
    return files


def substitute(files, values):
    """The files with every name replaced; a name that occurs nowhere is an error."""
    for name, value in values.items():
        if not any(name in text for text in files.values()):
            raise ExtractError(f"{name} occurs in no file of the document")
        files = {path: text.replace(name, value) for path, text in files.items()}
    return files


def main(document, folder, *assignments):
    values = dict(assignment.split("=", 1) for assignment in assignments)
    for path, text in substitute(extract(pathlib.Path(document).read_text()), values).items():
        goal = pathlib.Path(folder) / path
        goal.parent.mkdir(parents=True, exist_ok=True)
        goal.write_text(text)
        print(path)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except ExtractError as error:
        sys.exit(f"{sys.argv[1]}: {error}")
