# SPDX-License-Identifier: Apache-2.0
"""The schema of what comes with Phalanx: it accepts configs/, and has each field that help lists."""

import pathlib
import sys

import yaml

from tests.end_to_end import runs, schemas

CONFIGS = [pathlib.Path(argument) for argument in sys.argv[2:]]


class ConfigsSchemaTest(schemas.SchemaTest):

    def test_it_accepts_every_config_here(self):
        self.assertTrue(CONFIGS)
        for path in CONFIGS:
            errors = [error.message for error in
                      self.validator.iter_errors(yaml.safe_load(path.read_text()))]
            self.assertEqual(errors, [], path)


if __name__ == "__main__":
    runs.main()
