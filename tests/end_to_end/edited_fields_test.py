# SPDX-License-Identifier: Apache-2.0
"""Whichever way a field gets another value before a resume, by an override, by a file that includes the run's
config.yaml or by an edit of that, the answer is one: every field of every section and registered class, as the binary's
own schema lists them, and each section that is null set to a value. The run has a checkpoint, whose config counts.

By default a sample; --config=long takes all fields, and PHALANX_FIELDS=REGEX those whose path it is found in.
"""

import concurrent.futures
import copy
import json
import os
import re
import shutil
import subprocess
import threading

from tests import long
from tests.end_to_end import boundary_values_test as boundary
from tests.end_to_end import runs
from tests.end_to_end.boundary_values_test import FIELDS, ITEM, NEEDS, laid_over, nested, shown

SAMPLE = 5
# Fields that are not compared: `exp_dir` names the run, and `name` chooses all other fields.
NOT_COMPARED = {("exp_dir",), ("name",)}
# What a start computes with and in how many ranks: lines of their own say it, and no change is listed.
OF_A_START = {"compute", "launcher"}
CHANGE = re.compile(r"^\s*(?:changed since the last start: )?([\w.\[\]]+: was .*?, now .*?)(?: \([^()]*\))?$", re.M)


def all_fields(schema, path=(), classes=()):
    """(path, classes chosen on the way, schema) of every field."""
    for alternative in schema.get("anyOf", []):
        yield from all_fields(alternative, path, classes)
    properties = schema.get("properties", {})
    if path and "const" in properties.get("name", {}):
        classes = (*classes, (path, properties["name"]["const"]))
    for name, inner in properties.items():
        if name not in ("name", "preset", "include") and not inner.get("deprecated"):
            yield (*path, name), classes, inner
            yield from all_fields(inner, (*path, name), classes)
    if "items" in schema:
        yield from all_fields(schema["items"], (*path, ITEM), classes)


def values_of(schema, now):
    """Values that the schema lets a field have, another one than now."""
    for alternative in schema.get("anyOf", []):
        yield from values_of(alternative, now)
    yield from schema.get("enum", [])
    kinds = schema.get("type", [])
    for kind in [kinds] if isinstance(kinds, str) else kinds:
        if kind == "boolean":
            yield from (True, False)
        elif kind in ("integer", "number"):
            least = schema.get("minimum", schema.get("exclusiveMinimum", 0))
            number = now if isinstance(now, (int, float)) and not isinstance(now, bool) else least
            yield from (number * 2, number + 1, number / 2, number - 1, least, 0.5, 0.25, 3, 16)
        elif kind == "string":
            yield from ("other", "7s", "text.txt", "*")
        elif kind == "array":
            if isinstance(now, list) and now:
                yield from (now[:-1], now + now[-1:], now[::-1], now + ["other"])
            yield from ([], ["other"], ["text.txt"], [0.5, 0.75], [1, 2], [{}])
        elif kind == "null":
            yield None
        elif kind == "object" and now is None:
            name = schema.get("properties", {}).get("name", {}).get("const")
            yield ({"name": name} | NEEDS.get(name, {})) if name else {}
            if not name:
                yield from ({key: value} for key, inner in schema.get("properties", {}).items()
                            for value in list(values_of(inner, None))[:3])


def value_at(tree, path):
    """Returns None, too, if there is no such field."""
    for part in path:
        if part == ITEM:
            tree = tree[0] if isinstance(tree, list) and tree else None
        else:
            tree = tree.get(part) if isinstance(tree, dict) else None
    return tree


def with_value(tree, path, value):
    """A copy of the tree with the value at the path; a section or list that is null has it alone."""
    if not path:
        return value
    tree = copy.deepcopy(tree)
    if path[0] == ITEM:
        return [with_value(tree[0] if tree else None, path[1:], value), *(tree or [])[1:]]
    return (tree or {}) | {path[0]: with_value((tree or {}).get(path[0]), path[1:], value)}


class EditedFieldsTest(boundary.BoundaryValuesTest):

    test_values_are_refused_by_their_field_or_work = None  # the other test's

    def setUp(self):
        super().setUp()
        self.cases = {}
        for path, classes, schema in all_fields(json.loads(self.trainer("config", "schema").stdout)):
            if path not in NOT_COMPARED:
                self.cases.setdefault((path, classes), []).append(schema)
        self.lock = threading.Lock()
        self.runs = {}  # of a config: its folder, or why there is none
        self.locks = {}
        self.untried = []

    def call(self, folder, *arguments):
        done = subprocess.run([runs.TRAINER, *arguments], cwd=folder, text=True, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=runs.TIMEOUT_SECONDS, check=False,
                              env=os.environ | {"OMP_NUM_THREADS": "1", "PHALANX_GEMM": "default"})
        return done.returncode, done.stdout

    def new_folder(self, name, template=None):
        """With the test's data, and a copy of a run."""
        folder = self.folder / name
        folder.mkdir()
        for path in self.folder.iterdir():
            if path.is_file():
                os.link(path, folder / path.name)
        if (self.folder / "first").is_dir():
            (folder / "first").symlink_to(self.folder / "first")
        if template:
            shutil.copytree(template / "run", folder / "run")
        return folder

    def run_of(self, config):
        """The folder that holds a run of this config, which has trained a step; or what it says in place of that."""
        key = json.dumps(config, sort_keys=True)
        with self.lock:
            lock = self.locks.setdefault(key, threading.Lock())
        with lock:
            if key not in self.runs:
                folder = self.new_folder(f"run_of_{len(self.runs)}_{threading.get_ident()}")
                (folder / "base.yaml").write_text(json.dumps(config))
                code, said = self.call(folder, "base.yaml", "exp_dir=run")
                self.runs[key] = folder if code == 0 else said
            return self.runs[key]

    def resolved(self, folder, *arguments):
        """The config that the run's and these overrides make; nothing where it is refused."""
        code, said = self.call(folder, "config", "print", "run/config.yaml", "--json", *arguments)
        lines = [line for line in said.splitlines() if line.startswith("{")]
        return json.loads(lines[-1]) if code == 0 and lines else None

    @staticmethod
    def override(path, value):
        return f"{shown(path).replace(ITEM, '[0]')}={json.dumps(value)}"

    def another_value(self, folder, path, schemas, whole):
        """In a list, which is empty where the config takes no other."""
        now = value_at(whole, path)
        tried = []
        for value in (value for schema in schemas for value in values_of(schema, now)):
            if value == now or value in tried or len(tried) == 16:
                continue
            tried.append(value)
            changed = self.resolved(folder, self.override(path, value))
            if changed is not None and value_at(changed, path) != now:
                return [value]
        return []

    def answer(self, number, way, template, path, value, whole):
        """(exit code, the changes that are told)."""
        folder = self.new_folder(f"{number}_{way}", template)
        arguments = ["run/config.yaml", "exp_dir=run"]
        if way == "override":
            arguments.append(self.override(path, value))
        elif way == "include":
            top = path[:path.index(ITEM)] if ITEM in path else path  # a list is written whole
            over = nested(top, value_at(with_value(whole, path, value), top))
            (folder / "mine.yaml").write_text(json.dumps({"include": "run/config.yaml"} | over))
            arguments[0] = "mine.yaml"
        else:
            (folder / "run/config.yaml").write_text(json.dumps(with_value(whole, path, value)))
        code, said = self.call(folder, *arguments)
        shutil.rmtree(folder)
        return code, sorted(CHANGE.findall(said)), said

    def base_for(self, path, classes):
        config = self.config_for(path, classes)
        if ITEM in path:  # the element that is to change
            begin = path[:len(path) - path[::-1].index(ITEM)]
            config = laid_over(config, nested(begin, boundary.ELEMENTS.get(begin[-2], {})))
        return config

    def check(self, number, case):
        path, classes = case
        label = f"{shown(path)} {[name for _, name in classes]}"
        template = self.run_of(self.base_for(path, classes))
        if isinstance(template, str):
            self.untried.append(f"{label}: {template[-300:]}")
            return []
        whole = self.resolved(template)
        another = self.another_value(template, path, self.cases[case], whole)
        if not another:
            self.untried.append(f"{label}: no other value is taken")
            return []
        value, = another
        answers = {way: self.answer(number, way, template, path, value, whole) for way in ("override", "include", "edit")}
        wrong = []
        expected = answers["override"][:2]
        # As a change, or in the refusal of what does not fit the run's steps.
        told = expected[1] or (re.findall("|".join(boundary.names_of(path)), answers["override"][2]) if expected[0] else [])
        if not told and path[0] not in OF_A_START:
            wrong.append("it is not said")
        wrong += [way for way, answer in answers.items() if answer[:2] != expected]
        return [f"{label}={value}: {wrong} {answers}"] if wrong else []

    def test_every_way_has_the_same_answer(self):
        self.trainer("tiny.yaml", "exp_dir=first", "training.max_steps=1", "lr_scheduler.decay_steps=40")
        every = sorted(self.cases)
        chosen = every
        if FIELDS:
            chosen = [case for case in every if re.search(FIELDS, shown(case[0]))]
        elif not long.is_long():
            chosen = every[len(every) // (2 * SAMPLE)::len(every) // SAMPLE]
        long.tell_sample(len(chosen), len(every), "fields")
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            wrong = [text for found in pool.map(self.check, range(len(chosen)), chosen) for text in found]
        compared = len(chosen) - len(self.untried)
        print(f"{compared} compared; not: " + "\n".join(self.untried), flush=True)
        self.assertEqual(wrong, [], "\n".join(wrong))
        # Launchers that did not start this, and values that need others, are not.
        self.assertGreater(compared, len(chosen) // 2 if long.is_long() else 0)


if __name__ == "__main__":
    runs.main()
