# SPDX-License-Identifier: Apache-2.0
"""What may be on a disk after a power cut, by the journal of what a program has written.

The worst that POSIX allows: the data of a file is there up to its last fsync; of what came later any part
may be, in any order and torn, or only the room for it, as zeros. The entries of a folder (what was
created, renamed, removed in it) are there up to the last fsync of that folder; of the later changes any
may be, each as a whole. An fsync of a file says nothing of the folder that it is in.
"""

import dataclasses
import os

FOLDER = "folder"


@dataclasses.dataclass(frozen=True)
class Change:
    """A record of the journal; see fault_layer.h."""
    kind: str
    who: str
    inode: int
    offset: int
    data: bytes
    path: str
    other: str


def read_journal(path):
    changes = []
    with open(path, "rb") as journal:
        for line in journal:
            kind, who, inode, offset, size, name, other = line[:-1].decode().split("\t")
            data = journal.read(int(size))
            changes.append(Change(kind, who, int(inode), int(offset), data, name, other))
    return changes


class Node:
    """A file or a folder: what is certainly there, and what may be there as well."""

    def __init__(self, certain):
        self.certain = certain  # bytes, or of a folder its entries: nodes by name
        self.pending = []  # functions from such a value to the one after a change

    @property
    def is_folder(self):
        return isinstance(self.certain, dict)

    def now(self):
        """As the program sees it."""
        return with_changes(self, self.pending)

    def sync(self):
        self.certain, self.pending = self.now(), []


def written(offset, data):
    return lambda before: before[:offset].ljust(offset, b"\0") + data + before[offset + len(data):]


def extended(size):
    return lambda before: before.ljust(size, b"\0")


def truncated(size):
    return lambda before: before[:size].ljust(size, b"\0")


def entered(name, node):
    return lambda before: before | {name: node}


def removed(name, node):
    return lambda before: {known: other for known, other in before.items()
                           if known != name or other is not node}  # fmt: skip


def renamed(name, other, node):
    return lambda before: removed(name, node)(before) | {other: node}


def exchanged(name, node, other, other_node):
    return lambda before: before | {name: other_node, other: node}


class Disk:
    """Plays a journal, on a folder as it was before that."""

    def __init__(self, folder):
        self.inodes = {}
        self.root = self.loaded(folder)

    def loaded(self, path):
        """All that is there, which is certain."""
        node = (Node({entry.name: self.loaded(entry) for entry in path.iterdir()})
                if path.is_dir() else Node(path.read_bytes()))  # fmt: skip
        self.inodes[os.stat(path).st_ino] = node
        return node

    def split(self, path):
        folder, _, name = path.rpartition("/")
        return self.at(folder), name

    def at(self, path):
        node = self.root
        for part in path.split("/") if path else []:
            node = node.now()[part]
        return node

    def apply(self, change):
        getattr(self, change.kind)(change)

    def create(self, change):
        self.enter(change, Node(b""))

    def mkdir(self, change):
        self.enter(change, Node({}))

    def enter(self, change, node):
        self.inodes[change.inode] = node
        folder, name = self.split(change.path)
        folder.pending.append(entered(name, node))

    def write(self, change):
        self.inodes[change.inode].pending.append(written(change.offset, change.data))

    def extend(self, change):
        self.inodes[change.inode].pending.append(extended(change.offset))

    def truncate(self, change):
        self.inodes[change.inode].pending.append(truncated(change.offset))

    def sync(self, change):
        self.inodes[change.inode].sync()

    def unlink(self, change):
        folder, name = self.split(change.path)
        folder.pending.append(removed(name, folder.now()[name]))

    rmdir = unlink

    def rename(self, change):
        (folder, name), (target, other) = self.split(change.path), self.split(change.other)
        assert folder is target, "moves between folders are not modelled"
        folder.pending.append(renamed(name, other, folder.now()[name]))

    def exchange(self, change):
        (folder, name), (target, other) = self.split(change.path), self.split(change.other)
        assert folder is target, "moves between folders are not modelled"
        entries = folder.now()
        folder.pending.append(exchanged(name, entries[name], other, entries[other]))


def tree(node, entries=Node.now, data=Node.now, path=""):
    """What is on the disk: bytes or FOLDER by path; `entries` and `data` say what of each node is."""
    found = {}
    for name, child in entries(node).items():
        place = f"{path}{name}"
        if child.is_folder:
            found[place] = FOLDER
            found |= tree(child, entries, data, place + "/")
        else:
            found[place] = data(child)
    return found


def certain(node):
    return node.certain


def as_zeros(node):
    """The sizes are there, and what was certain, but none of the new data."""
    return node.certain.ljust(len(node.now()), b"\0")


def with_changes(node, changes):
    value = node.certain
    for change in changes:
        value = change(value)
    return value


class Lottery:
    """Keeps some of what was not synced: in order up to some moment, or any of it; the last one torn."""

    def __init__(self, random):
        self.random = random

    def entries(self, node):
        return with_changes(node, self.some(node))

    def data(self, node):
        if node.pending and self.random.random() < 0.2:
            return as_zeros(node)
        kept = self.some(node)
        value = with_changes(node, kept)
        if len(kept) < len(node.pending) and self.random.random() < 0.5:
            return self.torn(value, node.pending[len(kept)](value))
        return value

    def some(self, node):
        if self.random.random() < 0.5:
            return node.pending[:self.random.randint(0, len(node.pending))]
        share = self.random.choice((0.1, 0.5, 0.9))
        return [change for change in node.pending if self.random.random() < share]

    def torn(self, before, after):
        """The beginning of what a write has changed."""
        differing = [place for place in range(len(after))
                     if before[place:place + 1] != after[place:place + 1]]  # fmt: skip
        if not differing:
            return before
        cut = self.random.randint(differing[0], differing[-1])
        return after[:cut] + before[cut:]


def extremes(root):
    """By name: what a power cut may leave in the worst and in the best case."""
    return {
        "nothing that was not synced": tree(root, certain, certain),
        "all names, none of the data": tree(root, Node.now, certain),
        "all names and sizes, zeros for the data": tree(root, Node.now, as_zeros),
        "all data, none of the names": tree(root, certain, Node.now),
        "everything": tree(root),
    }


def some_of(root, random):
    """What a power cut may leave, by chance."""
    lottery = Lottery(random)
    return tree(root, lottery.entries, lottery.data)


def write_tree(found, folder):
    for path, content in sorted(found.items()):
        if content is FOLDER:
            (folder / path).mkdir()
        else:
            (folder / path).write_bytes(content)


def read_tree(folder):
    return {str(path.relative_to(folder)): FOLDER if path.is_dir() else path.read_bytes()
            for path in folder.rglob("*")}  # fmt: skip
