# SPDX-License-Identifier: Apache-2.0
r"""Reads the table of bad configs, bad_configs/*.txt. Each file is a group of cases:

    What the group is about.

    --- base.yaml                   a file that every case of the group has
    name: supervised

    === a title                     begins a case
    schema: rejects                 how a schema takes its one file: "accepts (WHY)"
    escaped: command                \xFF, \t, \r, \\ and \(text\)*1000 count in the arguments
    --- bad.yaml (escaped)          a file of the case; here they count too
    include: base.yaml
    seed: \x00
    $ NAME=value trainer bad.yaml   environment and arguments, quoted as for a shell
    error: ...                      all that stands on stderr
"""

import dataclasses
import pathlib
import re
import shlex

_TITLE, _FILE, _COMMAND = "=== ", "--- ", "$ "


@dataclasses.dataclass
class Case:
    """One case; `files` maps names to bytes, `own` names those that are not the whole group's."""
    title: str
    files: dict
    own: list
    settings: dict
    arguments: list = dataclasses.field(default_factory=list)
    environment: dict = dataclasses.field(default_factory=dict)
    message: str = ""


def _unescaped(text):
    r"""Bytes of a text with \xFF, \t, \r, \\ and \(text\)*1000 for a repetition."""
    repetition = re.compile(rb"\\\((.*?)\\\)\*(\d+)", re.DOTALL)
    data = repetition.sub(lambda m: m[1] * int(m[2]), text.encode())
    plain = {b"t": b"\t", b"r": b"\r", b"\\": b"\\"}
    return re.sub(rb"\\(?:x([0-9A-F]{2})|([tr\\]))",
                  lambda m: bytes([int(m[1], 16)]) if m[1] else plain[m[2]], data)


def _files(lines):
    """Files from `--- NAME` or `--- NAME (escaped)` on."""
    files = {}
    name = notes = None
    for line in lines + [_FILE]:
        if line.startswith(_FILE):
            if name is not None:
                text = "".join(files[name])
                files[name] = _unescaped(text) if notes == "escaped)" else text.encode()
            name, _, notes = line[len(_FILE):].partition(" (")
            files[name] = []
        else:
            files[name].append(line + "\n")
    del files[""]
    return files


def _case(title, lines, shared):
    head, command = lines, len(lines)
    for number, line in enumerate(lines):
        if line.startswith(_COMMAND):
            head, command = lines[:number], number
            break
    first_file = next((n for n, line in enumerate(head) if line.startswith(_FILE)), len(head))
    settings = dict(line.split(": ", 1) for line in head[:first_file])
    own = _files(head[first_file:])
    case = Case(title, shared | own, list(own), settings)
    as_bytes = _unescaped if settings.get("escaped") == "command" else str.encode
    words = shlex.split(lines[command][len(_COMMAND):])
    while "=" in words[0]:
        variable, value = words.pop(0).split("=", 1)
        case.environment[variable] = as_bytes(value)
    if words[0] != "trainer":
        raise ValueError(f"{title}: {words[0]} is not the trainer")
    case.arguments = [as_bytes(word) for word in words[1:]]
    case.message = "\n".join(lines[command + 1:]).rstrip("\n") + "\n"
    return case


def table():
    """The files of the table."""
    return sorted(pathlib.Path(__file__).parent.glob("bad_configs/*.txt"))


def read(path):
    """All cases of a file of the table."""
    preamble, *texts = re.split(rf"^{_TITLE}", pathlib.Path(path).read_text(), flags=re.MULTILINE)
    lines = preamble.rstrip("\n").split("\n")
    start = next((n for n, line in enumerate(lines) if line.startswith(_FILE)), len(lines))
    shared = _files(lines[start:])
    cases = []
    for text in texts:
        title, *rest = text.split("\n")
        cases.append(_case(title, rest, shared))
    return cases


def rewrite(path, messages):
    """Puts messages, by their cases' titles, into a file of the table; others stay."""
    pieces = re.split(rf"^({_TITLE}.*\n)", pathlib.Path(path).read_text(), flags=re.MULTILINE)
    for number in range(1, len(pieces), 2):
        title = pieces[number][len(_TITLE):].rstrip("\n")
        if title not in messages:
            continue
        head, command, _ = re.split(r"^(\$ .*\n)", pieces[number + 1], maxsplit=1,
                                    flags=re.MULTILINE)
        last = number + 2 == len(pieces)
        pieces[number + 1] = head + command + messages[title] + ("" if last else "\n")
    pathlib.Path(path).write_text("".join(pieces))
