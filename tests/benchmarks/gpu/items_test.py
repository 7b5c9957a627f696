# SPDX-License-Identifier: Apache-2.0
"""The GPU kit has every item that its files define and each optimizer, and docs/gpu.md has a row of each item."""

import fnmatch
import pathlib
import re
import sys
import unittest
import unittest.mock

FIELDS = pathlib.Path(sys.argv.pop()).resolve()
PAGE = pathlib.Path(sys.argv.pop()).resolve()
MODULES = pathlib.Path(sys.argv.pop()).absolute().parent
sys.path.insert(0, str(MODULES))

import checklist  # noqa: E402
import models  # noqa: E402


def patterns(page):
    """The names in the first column of the table of items; `.fp64` behind `parity.adamw` is `parity.fp64`."""
    table = page.split("\n## What each item shows\n", 1)[1].split("\n\n**", 1)[0]
    for cell in re.findall(r"^\| (`[^|]*) \|", table, re.MULTILINE):
        group = ""
        for name in re.findall(r"`([^`]+)`", cell):
            group = name.split(".")[0] or group
            yield f"{group}.{name.partition('.')[2]}"


class ItemsTest(unittest.TestCase):

    def test_no_file_of_items_is_left_out(self):
        chosen = {module.__name__ for modules in checklist.GROUPS.values() for module in modules}
        defined = {path.stem for path in MODULES.glob("*.py") if path.stem != "checklist"
                   and re.search(r"^ITEMS = ", path.read_text(encoding="utf-8"), re.MULTILINE)}
        self.assertGreater(len(defined), 10)
        self.assertEqual(chosen, defined)

    def test_an_item_is_of_its_group(self):
        for group, modules in checklist.GROUPS.items():
            for item in (item for module in modules for item in module.ITEMS):
                self.assertEqual(item.group, group)

    def test_each_optimizer_is_compared(self):
        kit = unittest.mock.Mock(device="cpu", text="text", size=lambda real, dry: dry)
        compared = {make(kit, None)["optimizer"]["name"] for make in models.CASES["optimizers"].values()}
        names = re.search(r"^\| `optimizer\.name` \| one of ([\w, ]+) \|", FIELDS.read_text(encoding="utf-8"), re.MULTILINE)
        self.assertEqual(compared, set(names[1].split(", ")))

    def test_the_page_has_a_row_of_each_item(self):
        names, listed = [item.name for item in checklist.ITEMS], list(patterns(PAGE.read_text(encoding="utf-8")))
        self.assertEqual([name for name in names if not any(fnmatch.fnmatch(name, one) for one in listed)], [])
        self.assertEqual([one for one in listed if not fnmatch.filter(names, one)], [])

    def test_names_of_the_page_are_read(self):
        page = "\n## What each item shows\n\n| item | |\n|---|---|\n| `a.b`, `.c` | `d` |\n| `e.*` | |\n\n**Two** `f.g`\n"
        self.assertEqual(list(patterns(page)), ["a.b", "a.c", "e.*"])


if __name__ == "__main__":
    unittest.main()
