# SPDX-License-Identifier: Apache-2.0
"""`trainer config schema` through jsonschema and PyYAML, as an editor would use it."""

import json
import pathlib
import re
import sys

import jsonschema
import yaml

from tests.end_to_end import bad_configs, runs

CONFIGS = [pathlib.Path(argument) for argument in sys.argv[2:] if argument.endswith(".yaml")]
TABLE = [pathlib.Path(argument) for argument in sys.argv[2:] if argument.endswith(".txt")]

# Laid over the tiny config: what an editor should mark.
WRONG = {
    "unknown key": {"trainin": {}},
    "unknown key in a section": {"training": {"max_step": 3}},
    "unknown key of a class": {"model": {"name": "gpt2", "layers": 3}},
    "a field of another class": {"optimizer": {"name": "sgd", "betas": [0.9, 0.99]}},
    "unknown class": {"optimizer": {"name": "adamz"}},
    "unknown class, short": {"optimizer": "adamz"},
    "unknown trainer": {"name": "supervized"},
    "text for a number": {"training": {"max_steps": "many"}},
    "real for an integer": {"training": {"max_steps": 1.5}},
    "below the range": {"training": {"batch_size": 0}},
    "at an open bound": {"model": {"name": "gpt2", "embd_pdrop": 1.0}},
    "unknown choice": {"checkpoint": {"resume": "maybe"}},
    "null where there must be a value": {"optimizer": {"name": "adamw", "betas": [0.9, None]}},
    "null for what must be given": {"name": None},
    "an unknown preset": {"model": {"preset": "gpt2-1m"}},
    "a duration without its unit": {"parallel": {"timeout": 30}},
    "a count in no unit there is": {"training": {"max_steps": "3K"}},
    "a list for a value": {"training": {"batch_size": [1]}},
    "a value for a list": {"optimizer": {"name": "adamw", "betas": 0.9}},
    "too short a list": {"optimizer": {"name": "adamw", "betas": [0.9]}},
    "a value for a section": {"training": 3},
    "an include that is no file": {"include": {"a": 1}},
}

RIGHT = {
    "nothing": {},
    "an interpolation": {"training": {"max_steps": "${oc.env:STEPS,3}"}},
    "a class by its name": {"optimizer": "sgd"},
    "null where it may be": {"training": {"clip_grad_norm": None}},
    "null, which takes the default again": {"training": {"batch_size": None}},
    "a preset": {"model": "gpt2-355m", "parallel": "ddp"},
    "a preset among fields": {"model": {"preset": "gpt2-355m", "n_layer": 1}},
    "a duration, a count, a number for a name":
        {"parallel": {"timeout": "1h30m", "sharding_strategy": 4},
         "training": {"max_steps": "1.5k"}},
    "a former name": {"parallel": {"timeout_seconds": 30}},
    "a word for null": {"launcher": {"processes": "auto"}},
    "the default class": {"lr_scheduler": {"warmup_steps": 3}},
    "an empty section": {"training": None, "lr_scheduler": None},
    "a layer, which names no class": {"model": {"n_layer": 1}, "optimizer": {"lr": 0.5}},
    "what is still to be given": {"optimizer": "???", "training": {"max_steps": "???"}},
    "a class that is filled in": {"optimizer": {"name": "${oc.env:OPT,adamw}", "lr": 0.5}},
    "includes": {"include": ["a.yaml", "b.yaml"]},
}


def documented_paths(help_text):
    """Dotted paths of all fields in a help text."""
    return set(re.findall(r"^([a-z_0-9.\[\]]+)  \(", help_text, re.MULTILINE))


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
    if "items" in schema:
        found |= schema_paths(schema["items"], path + "[]")
    return found


class SchemaTest(runs.RunTest):

    def setUp(self):
        super().setUp()
        self.schema = json.loads(self.trainer("config", "schema").stdout)
        jsonschema.Draft202012Validator.check_schema(self.schema)
        self.validator = jsonschema.Draft202012Validator(self.schema)
        self.tiny = yaml.safe_load(runs.CONFIG)

    def is_valid(self, config):
        return self.validator.is_valid(config)

    def is_valid_text(self, text):
        """Whether an editor marks nothing, the mistakes of YAML's own among it."""
        try:
            return self.is_valid(yaml.safe_load(text))
        except yaml.YAMLError:
            return False

    def test_it_accepts_every_config_here(self):
        self.assertTrue(CONFIGS)
        for path in CONFIGS:
            errors = [error.message for error in
                      self.validator.iter_errors(yaml.safe_load(path.read_text()))]
            self.assertEqual(errors, [], path)

    def test_it_accepts_what_the_trainer_prints(self):
        printed = self.trainer("config", "print", "tiny.yaml").stdout
        self.assertTrue(self.is_valid(yaml.safe_load(printed)), printed)

    def test_it_accepts_every_way_to_write_a_field(self):
        for what, change in RIGHT.items():
            self.assertTrue(self.is_valid(self.tiny | change), what)

    def test_it_rejects_mistakes_of_structure(self):
        for what, change in WRONG.items():
            self.assertFalse(self.is_valid(self.tiny | change), what)

    def test_it_takes_the_tables_cases_as_they_say(self):
        rejected = 0
        for path in TABLE:
            for case in bad_configs.read(path):
                setting = case.settings.get("schema")
                if setting is None:
                    continue
                (name,) = case.own
                with self.subTest(f"{path.stem}: {case.title}"):
                    self.assertEqual(self.is_valid_text(case.files[name]),
                                     setting.startswith("accepts"))
                rejected += setting == "rejects"
        self.assertGreater(rejected, 100)

    def test_it_holds_every_field_that_help_tells_of(self):
        documented = documented_paths(self.trainer("train", "--help").stdout)
        self.assertGreater(len(documented), 50)
        sections = {path for path in documented if any(p.startswith(path + ".") for p in documented)}
        self.assertEqual(documented - schema_paths(self.schema), set())
        extra = schema_paths(self.schema) - documented - sections - {"include"}
        # A choice's section itself: help names what is in it.
        self.assertEqual({path for path in extra if f"{path}.name" not in documented}, set())


if __name__ == "__main__":
    runs.main()
