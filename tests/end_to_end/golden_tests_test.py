# SPDX-License-Identifier: Apache-2.0
"""No golden test uses what a new class joins: by Bazel's own account of what these tests need."""

import pathlib
import sys
import unittest

from tests.end_to_end import update_expected

NEEDED, GATHERED = (set(pathlib.Path(argument).read_text().split()) for argument in sys.argv[1:3])
HERE = pathlib.Path(__file__).parent
FIXED_TRAINER = "//tests/fixed_trainer:fixed_trainer"


class GoldenTestsTest(unittest.TestCase):

    def test_they_run_the_fixed_trainer(self):
        self.assertIn(FIXED_TRAINER, NEEDED)

    def test_they_need_nothing_that_gathers_the_classes_of_a_kind(self):
        # The second is of each program that holds them all; the others stand for their kinds.
        self.assertLessEqual({"//trainer:compositions", "//trainer:registered", "//models:all"}, GATHERED)
        self.assertEqual(NEEDED & GATHERED, set())

    def test_whatever_has_expected_texts_to_update_is_one_of_them_and_is_updated(self):
        updating = {path.stem for path in HERE.glob("*_test.py")
                    if path.name != pathlib.Path(__file__).name and "--update" in path.read_text()}
        self.assertEqual(updating, set(update_expected.TESTS))
        for test in updating:
            self.assertIn(f"//tests/end_to_end:{test}.py", NEEDED)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
