# SPDX-License-Identifier: Apache-2.0
"""What the schema of a config accepts and rejects."""

import yaml

from tests.end_to_end import bad_configs, runs, schemas
from tests.fixed_trainer.config import CONFIG

# Laid over the tiny config: what an editor should mark.
WRONG = {
    "unknown key": {"trainin": {}},
    "unknown key in a section": {"training": {"max_step": 3}},
    "unknown key of a class": {"model": {"name": "tower", "layers": 3}},
    "a field of another class": {"optimizer": {"name": "roll", "betas": [0.9, 0.99]}},
    "unknown class": {"optimizer": {"name": "no_such_optimizer"}},
    "unknown class, short": {"optimizer": "no_such_optimizer"},
    "unknown trainer": {"name": "no_such_trainer"},
    "text for a number": {"training": {"max_steps": "many"}},
    "real for an integer": {"training": {"max_steps": 1.5}},
    "below the range": {"training": {"batch_size": 0}},
    "at an open bound": {"model": {"name": "tower", "embd_pdrop": 1.0}},
    "unknown choice": {"checkpoint": {"resume": "maybe"}},
    "null where there must be a value": {"optimizer": {"name": "means", "betas": [0.9, None]}},
    "null for what must be given": {"name": None},
    "an unknown preset": {"model": {"preset": "no_such_preset"}},
    "a duration without its unit": {"parallel": {"timeout": 30}},
    "a count in no unit there is": {"training": {"max_steps": "3K"}},
    "a list for a value": {"training": {"batch_size": [1]}},
    "a value for a list": {"optimizer": {"name": "means", "betas": 0.9}},
    "too short a list": {"optimizer": {"name": "means", "betas": [0.9]}},
    "a value for a section": {"training": 3},
    "an include that is no file": {"include": {"a": 1}},
}

RIGHT = {
    "nothing": {},
    "an interpolation": {"training": {"max_steps": "${oc.env:STEPS,3}"}},
    "a class by its name": {"optimizer": "roll"},
    "null where it may be": {"training": {"clip_grad_norm": None}},
    "null, which takes the default again": {"training": {"batch_size": None}},
    "a preset": {"model": "tower-355m", "parallel": "ddp"},
    "a preset among fields": {"model": {"preset": "tower-355m", "n_layer": 1}},
    "a duration, a count, a number for a name":
        {"parallel": {"timeout": "1h30m", "sharding_strategy": 4},
         "training": {"max_steps": "1.5k"}},
    "a former name": {"parallel": {"timeout_seconds": 30}},
    "a word for null": {"launcher": {"processes": "auto"}},
    "the default class": {"lr_scheduler": {"warmup_steps": 3}},
    "an empty section": {"training": None, "lr_scheduler": None},
    "a layer, which names no class": {"model": {"n_layer": 1}, "optimizer": {"lr": 0.5}},
    "what is still to be given": {"optimizer": "???", "training": {"max_steps": "???"}},
    "a class that is filled in": {"optimizer": {"name": "${oc.env:OPT,means}", "lr": 0.5}},
    "a strategy": {"strategy": "fsdp"},
    "a strategy with fields": {"strategy": {"name": "ddp", "bucket_cap_mb": 5}},
    "includes": {"include": ["a.yaml", "b.yaml"]},
}


class SchemaTest(schemas.SchemaTest):
    config = CONFIG

    def is_valid_text(self, text):
        """Whether an editor marks nothing, the mistakes of YAML's own among it."""
        try:
            return self.is_valid(yaml.safe_load(text))
        except yaml.YAMLError:
            return False

    def test_it_accepts_every_way_to_write_a_field(self):
        for what, change in RIGHT.items():
            self.assertTrue(self.is_valid(self.tiny | change), what)

    def test_it_rejects_mistakes_of_structure(self):
        for what, change in WRONG.items():
            self.assertFalse(self.is_valid(self.tiny | change), what)

    def test_it_takes_the_tables_cases_as_they_say(self):
        rejected = 0
        for path in bad_configs.table():
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


if __name__ == "__main__":
    runs.main()
