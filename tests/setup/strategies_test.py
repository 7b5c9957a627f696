# SPDX-License-Identifier: Apache-2.0
"""docs/strategies.md has every field of the strategies of torch and TorchTNT, and tests that there are."""

import inspect
import pathlib
import re
import sys
import unittest

from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
from torch.nn.parallel import DataParallel, DistributedDataParallel

FILE_OF_THE_TREE, PAGE = (pathlib.Path(argument) for argument in sys.argv[1:3])
TREE = FILE_OF_THE_TREE.resolve().parent
del sys.argv[1:3]

# TorchTNT is no package of the tests: the fields of its dataclasses.
DDP_STRATEGY = {
    "output_device", "dim", "broadcast_buffers", "process_group", "bucket_cap_mb", "find_unused_parameters",
    "check_reduction", "gradient_as_bucket_view", "static_graph", "comm_state", "comm_hook", "sync_batchnorm"}
FSDP_STRATEGY = {
    "process_group", "sharding_strategy", "cpu_offload", "auto_wrap_policy", "backward_prefetch", "mixed_precision",
    "ignored_modules", "param_init_fn", "sync_module_states", "forward_prefetch", "limit_all_gathers",
    "use_orig_params", "state_dict_type", "state_dict_config", "optim_state_dict_config"}

FSDP2_STRATEGY = {
    "modules_to_shard", "shard_predicates", "reshard_after_forward", "mp_policy", "cpu_offload",
    "shard_on_largest_dim"}


def tables(page):
    """(field, what it does, what shows it) of each chapter."""
    return {chapter.splitlines()[0]: re.findall(r"^\| `(\w+)` \| (.+?) \| `(.+?)` \|$", chapter, re.MULTILINE)
            for chapter in re.split(r"^## ", page, flags=re.MULTILINE)[1:]}


def names(rows):
    return {name for name, *_ in rows}


def excepted(page, chapter):
    """The fields that a chapter's first sentence leaves out of another one's."""
    sentence = re.search(rf"^## {chapter}\n\nIt has the fields of .*? except (.*?), and these:$", page, re.MULTILINE)
    return set(re.findall(r"`(\w+)`", sentence.group(1)))


def parameters(function):
    return set(inspect.signature(function).parameters) - {"self", "module"}


class StrategiesTest(unittest.TestCase):
    page = PAGE.read_text(encoding="utf-8")
    tables = tables(page)

    def test_every_field_of_torch(self):
        self.assertEqual(names(self.tables["DataParallel"]), parameters(DataParallel.__init__))
        ddp = parameters(DistributedDataParallel.__init__)
        self.assertEqual(names(self.tables["DistributedDataParallel"]), ddp)
        self.assertEqual(names(self.tables["FullyShardedDataParallel"]),
                         parameters(FullyShardedDataParallel.__init__))
        self.assertEqual(names(self.tables["fully_shard"]), parameters(fully_shard))

    def test_every_field_of_torchtnt(self):
        for chapter, base, fields in (("DDPStrategy", "DistributedDataParallel", DDP_STRATEGY),
                                      ("FSDPStrategy", "FullyShardedDataParallel", FSDP_STRATEGY)):
            with self.subTest(chapter):
                shared = names(self.tables[base]) - excepted(self.page, chapter)
                self.assertEqual(names(self.tables[chapter]) | shared, fields)
        self.assertEqual(names(self.tables["FSDP2Strategy"]), FSDP2_STRATEGY)

    def test_what_shows_an_effect_is_there(self):
        for chapter, rows in self.tables.items():
            for field, _, shown_by in rows:
                with self.subTest(f"{chapter}.{field}"):
                    path, _, case = shown_by.partition(": ")
                    text = (TREE / path).read_text(encoding="utf-8")
                    # Programs that compare with Python have one case for all.
                    self.assertTrue(case or path.startswith("tests/parity/"), shown_by)
                    if case:
                        self.assertRegex(text, rf", {case}\) {{|def {case}\(")
                    self.assertIn(pathlib.Path(path).stem, (TREE / path).with_name("BUILD").read_text(encoding="utf-8"))

    def test_a_case_that_is_not_there_is_found(self):
        self.assertNotRegex("TEST(Suite, Other) {", r", Case\) {|def Case\(")

    def test_what_has_no_meaning_is_in_the_table_of_words(self):
        words = (TREE / "docs/coming_from.md").read_text(encoding="utf-8")
        for chapter, rows in self.tables.items():
            for field, here, shown_by in rows:
                if chapter == "Comm hooks" and not shown_by.startswith("tests/end_to_end/coming_from_test.py"):
                    continue  # fields of parallel.ddp.comm_hook, by their own names
                if shown_by.startswith("tests/end_to_end/coming_from_test.py"):
                    self.assertRegex(words, rf"(?m)^\| `{field}` \| ", field)
                else:
                    self.assertTrue("`parallel." in here or "mixed_precision" in here or field == "state_dict_type", field)


if __name__ == "__main__":
    unittest.main()
