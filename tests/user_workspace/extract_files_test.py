# SPDX-License-Identifier: Apache-2.0
"""What extract_files takes from a document, and which documents it refuses."""

import unittest

from tests.user_workspace.extract_files import ExtractError, extract, substitute

DOCUMENT = """\
# How to

```sh
ignored
```

```cpp file=my/task.cc
int main() {}
```

Then:

````text linenos file=my/notes.md
```
inner
```
````

```cpp file=my/task.cc
// more
```
"""


class ExtractFilesTest(unittest.TestCase):

    def test_takes_the_blocks_that_name_a_file(self):
        self.assertEqual(extract(DOCUMENT), {
            "my/task.cc": "int main() {}\n// more\n",
            "my/notes.md": "```\ninner\n```\n",
        })

    def test_refuses_paths_outside_the_folder(self):
        for path in ("/etc/passwd", "../x", "a/../../x"):
            with self.assertRaisesRegex(ExtractError, "leaves the folder"):
                extract(f"```sh file={path}\n```\n")

    def test_refuses_a_document_without_files_and_an_open_block(self):
        with self.assertRaisesRegex(ExtractError, "shows no file"):
            extract("# nothing\n```cpp\n```\n")
        with self.assertRaisesRegex(ExtractError, "not closed"):
            extract("```cpp file=a.cc\nint a;\n")

    def test_replaces_names_and_misses_none(self):
        self.assertEqual(substitute({"a": "path = X"}, {"X": "/p"}), {"a": "path = /p"})
        with self.assertRaisesRegex(ExtractError, "occurs in no file"):
            substitute({"a": "path = X"}, {"Y": "/p"})


if __name__ == "__main__":
    unittest.main()
