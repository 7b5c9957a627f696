# SPDX-License-Identifier: Apache-2.0
"""The same as matrix_test for a sharded model, and what only such a one can meet."""

from tests.end_to_end import runs
from tests.faults import matrix_test


class FsdpMatrixTest(matrix_test.Matrix, runs.RunTest):
    PHASES = ("init", "forward", "backward", "validation", "checkpoint")
    WAY = ("parallel.use_fsdp=true", "parallel.sharding_strategy=FULL_SHARD")
    IS_WHOLE = False

    def test_nan_on_one_rank_ends_all_before_the_weights_move(self):
        self.trainer(*matrix_test.ARGUMENTS, *self.WAY, "exp_dir=whole")
        begun = self.begin("backward", "nan", 1)
        process, ranks, _ = begun
        self.assertEqual(len(ranks), 2)
        _, errors = process.communicate(timeout=runs.TIMEOUT_SECONDS)
        self.assertEqual(process.returncode, 1, errors)
        self.assertRegex(errors, r"the gradient of \S+ is not finite on rank \d; samples [^\n]*; the weights are as "
                                 "they were before this step")
        self.assertEqual(errors.count("error:"), 1, errors)
        self.check_goes_on("backward", "nan", 1)


if __name__ == "__main__":
    runs.main()
