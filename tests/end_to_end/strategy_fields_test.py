# SPDX-License-Identifier: Apache-2.0
"""`strategy` takes the fields in the tables of docs/strategies.md, and refuses those that these call refused, in their
words."""

import os
import pathlib
import re
import subprocess
import sys

from tests.end_to_end import runs

PAGE = pathlib.Path(sys.argv[2])
STRATEGIES = {"DistributedDataParallel": "ddp", "DDPStrategy": "ddp", "FullyShardedDataParallel": "fsdp",
              "FSDPStrategy": "fsdp", "FSDP2Strategy": "fsdp", "fully_shard": "fsdp"}
REFUSED = "refused: "


def tables(page):
    """By chapter: each field, and what the page says of it."""
    return {chapter.splitlines()[0]: dict(re.findall(r"^\| `(\w+)` \| (.+?) \| `.+?` \|$", chapter, re.MULTILINE))
            for chapter in re.split(r"^## ", page, flags=re.MULTILINE)[1:]}


class StrategyFieldsTest(runs.RunTest):
    tables = tables(PAGE.read_text(encoding="utf-8"))

    def unknown_keys(self, *arguments):
        """What is said of keys that are unknown, by the name of the key."""
        environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
        process = subprocess.run([runs.TRAINER, "tiny.yaml", *arguments], cwd=self.folder, text=True, env=environment,
                                 stdin=subprocess.DEVNULL, capture_output=True, check=False,
                                 timeout=runs.TIMEOUT_SECONDS)
        # Of the fields that are taken, 1 is no value: nothing is trained.
        self.assertEqual((process.returncode, process.stdout), (2, ""), process.stderr)
        return dict(re.findall(r"^(?:error: )?command line, .*?: parallel\.(?:\w+\.)?(\w+): (unknown key.*)$",
                               process.stderr, re.MULTILINE))

    def test_every_row(self):
        for chapter, strategy in STRATEGIES.items():
            rows = self.tables[chapter]
            self.assertTrue(rows, chapter)
            fields = [f"strategy.{field}=1" for field in rows]
            said = self.unknown_keys(f"strategy.name={strategy}", *fields, "parallel.timeout=no_such_time")
            for field, here in rows.items():
                with self.subTest(f"{chapter}.{field}"):
                    if here.startswith(REFUSED):
                        self.assertIn(here.removeprefix(REFUSED).replace("`", ""), said.get(field, ""))
                    else:
                        self.assertNotIn(field, said)


if __name__ == "__main__":
    runs.main()
