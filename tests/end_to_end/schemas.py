# SPDX-License-Identifier: Apache-2.0
"""`trainer config schema` through jsonschema and PyYAML, as an editor would use it: what holds for any
trainer's."""

import json
import re

import jsonschema
import yaml

from tests.end_to_end import runs


def documented_paths(help_text):
    """Dotted paths of all fields in a help text."""
    paths = re.findall(r"^([A-Za-z_0-9.\[\]]+)  \(", help_text, re.MULTILINE)
    return {path for path in paths if ".NAME." not in path}  # NAME is the user's own


def schema_paths(schema, path=""):
    """Dotted paths of all properties, through alternatives and lists."""
    found = set()
    for name, inner in schema.get("properties", {}).items():
        if inner.get("deprecated") or name == "preset":
            continue
        below = f"{path}.{name}" if path else name
        found |= {below} | schema_paths(inner, below)
    for alternative in schema.get("anyOf", []):
        found |= schema_paths(alternative, path)
    if "$ref" in schema:  # A class within one of its own kind; the fields of both stand above.
        found.add(f"{path}.name")
    if "items" in schema:
        found |= schema_paths(schema["items"], path + "[]")
    return found


class SchemaTest(runs.RunTest):

    def setUp(self):
        super().setUp()
        self.schema = json.loads(self.trainer("config", "schema").stdout)
        jsonschema.Draft202012Validator.check_schema(self.schema)
        self.validator = jsonschema.Draft202012Validator(self.schema)
        self.tiny = yaml.safe_load(self.config)

    def is_valid(self, config):
        return self.validator.is_valid(config)

    def test_it_accepts_what_the_trainer_prints(self):
        printed = self.trainer("config", "print", "tiny.yaml").stdout
        self.assertTrue(self.is_valid(yaml.safe_load(printed)), printed)

    def test_it_holds_every_field_that_help_tells_of(self):
        documented = documented_paths(self.trainer("train", "--help").stdout)
        self.assertGreater(len(documented), 50)
        sections = {path for path in documented if any(p.startswith(path + ".") for p in documented)}
        self.assertEqual(documented - schema_paths(self.schema), set())
        extra = schema_paths(self.schema) - documented - sections - {"include", "strategy"}
        # A choice's section itself: help names what is in it.
        self.assertEqual({path for path in extra if f"{path}.name" not in documented}, set())
