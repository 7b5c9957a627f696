# SPDX-License-Identifier: Apache-2.0
"""Values at the ends of every number's range, in every numeric field of every section and registered
class, as the binary's own schema lists them. Each is either refused, with exit code 2 and a message
that names the field, or the run begins with it; memory may end in a step or a validation, with a message
that names the field. By hand, PHALANX_FIELDS=REGEX takes all values of the fields whose path it is found in.

Most values are refused by the config alone, which names all its mistakes at once. So values of different fields that
need the same others are first tried together, in one config; what it does not name starts a run of its own. Each value
of the sample, which a default run tries, starts one."""

import concurrent.futures
import collections
import copy
import itertools
import json
import math
import os
import re
import resource
import shutil
import struct
import subprocess

import yaml

from tests import long
from tests.end_to_end import runs, text_pairs

VALUES = [0, -1, 2**31, 2**63 - 1, 1e308, math.nan, math.inf]
# The sample: cases that were not clear once. `name` ends a field's path. The first are beyond what their field takes.
REFUSED = [("model.n_positions", 2**63 - 1), ("model.n_inner", 2**63 - 1), ("model.vocab_size", 2**63 - 1),
           ("model.n_layer", 10**6), ("training.clip_grad_norm", 1e308), ("training.clip_grad_value", 1e308),
           ("task.data.loader.num_workers", 2**63 - 1), ("task.data.loader.prefetch_batches", 2**63 - 1),
           ("launcher.processes", 2**63 - 1)]
KNOWN = [*REFUSED, ("model.n_positions", 2**27), ("task.loader.num_workers", 1024), ("training.batch_size", 2**31),
         ("checkpoint.keep_best.k", 2**31), ("training.gradient_accumulation_steps", 2**31)]
SAMPLE = 14  # further ones
LONGEST_SECONDS = 20  # of a run that goes on: it has begun
LARGEST_DATA = 6 << 30  # bytes that a run may take
ITEM = "[]"
FIELDS = os.environ.get("PHALANX_FIELDS")

T5 = {"name": "t5", "vocab_size": 384, "d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 2, "num_heads": 2}
LLAMA = {"name": "llama", "vocab_size": 256, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2,
         "num_attention_heads": 2, "max_position_embeddings": 64}
PAIRS = {"files": ["pairs.jsonl"], "input": "{document}: ", "target": "{summary}"}
TOKENS = {"name": "nanogpt", "files": ["tokens.bin"]}
GENERATION = {"max_new_tokens": 4}
TASKS = {
    "language_modeling": {},
    "copying": {"task": {"name": "copying", "length": 8}},
    "instruction_tuning": {"model": {"name": "gpt2", "n_positions": 64}, "task": {
        "name": "instruction_tuning", "generation": GENERATION,
        "data": {"tokenizer": "bytes", "end_of_text": 1, "pairs": PAIRS, "sequence_length": 48}}},
    "sequence_to_sequence": {"model": T5, "task": {
        "name": "sequence_to_sequence", "generation": GENERATION,
        "data": {"tokenizer": "bytes", "end_of_text": 1, "pairs": PAIRS, "input_length": 32,
                 "target_length": 16}}},
}
MODELS = {"llama": {"model": LLAMA}, "t5": TASKS["sequence_to_sequence"]}
# What a class cannot do without.
NEEDS = {"nanogpt": {"files": ["tokens.bin"]}, "llmc": {"files": ["llmc.bin"]}, "megatron": {"files": ["set.idx"]},
         "post_localSGD": {"start_localSGD_iter": 1, "period": 2},
         "cosine_with_restarts": {"cycle_steps": 4}, "multi_step": {"milestones": [4]}, "exponential": {"gamma": 0.5},
         "warmup_stable_decay": {"cooldown_steps": 1},
         "chain": {"schedules": ["constant", "cosine"], "milestones": [2]},
         "bytes": {"files": ["text.txt"]}, "text": {"files": ["text.txt"], "tokenizer": "bytes"},
         "range": {"source": TOKENS}, "concatenation": {"sources": [TOKENS]}}
# What gives the fields of a section an effect, beside a path that begins so.
EFFECTS = {
    ("lora",): {"lora": {"target_modules": ["*"]}, "checkpoint": {"load_from": "first"}},
    ("activation_checkpointing",): {"activation_checkpointing": {"policy": "every_n"}},
    ("parallel", "fsdp"): {"parallel": {"use_fsdp": True}},
    ("averages",): {"averages": {"method": "ema", "validate": True}},
    ("early_stopping",): {"early_stopping": {"metric": "loss"}},
    ("guards",): {"guards": {"on_spike": "skip"}},
    ("predict",): TASKS["instruction_tuning"],
    ("validation", "generate"): TASKS["instruction_tuning"] | {"validation": {"every_n_steps": 1}},
    ("task", "data", "source"): {"task": {"data": {"path": None}}},
    ("task", "data", "mixture"): {"task": {"data": {"path": None}}},
    ("task", "data", "span_corruption"): {"task": {"data": {"pairs": None, "span_corruption": {"source": TOKENS}}}},
    ("optimizer", "dampening"): {"optimizer": {"momentum": 0.5}},
    ("model", "rope_scaling"): {"model": LLAMA},
}
# Where an element of a list needs more than the one field.
ELEMENTS = {"mixture": {"source": TOKENS}, "groups": {"parameters": ["*"]}}


def numeric_fields(schema, path=(), classes=()):
    """(path, classes chosen on the way, bounds) of every number."""
    is_number = schema.get("type") in ("integer", "number")
    if is_number:
        yield path, classes, [schema[key] for key in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
                              if key in schema]
    for alternative in schema.get("anyOf", []):
        yield from numeric_fields(alternative, path, classes)
    properties = schema.get("properties", {})
    if path and "const" in properties.get("name", {}):
        classes = (*classes, (path, properties["name"]["const"]))
    for name, inner in properties.items():
        if name not in ("name", "preset", "include") and not inner.get("deprecated"):
            yield from numeric_fields(inner, (*path, name), classes)
    if "items" in schema:
        yield from numeric_fields(schema["items"], (*path, ITEM), classes)


def laid_over(base, other):
    """A config with another one over it; None takes a key away."""
    if isinstance(base, list) and isinstance(other, list) and len(base) == len(other) == 1:
        return [laid_over(base[0], other[0])]
    if not isinstance(base, dict) or not isinstance(other, dict) or base.get("name") != other.get("name", base.get("name")):
        return copy.deepcopy(other)
    merged = copy.deepcopy(base)
    for key, value in other.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = laid_over(merged.get(key), value)
    return merged


def nested(path, value):
    """What lies at a path, as a config."""
    for i in range(len(path) - 1, -1, -1):
        if path[i] == ITEM:
            value = [ELEMENTS.get(path[i - 1], {}) | value if isinstance(value, dict) else value]
        else:
            value = {path[i]: value}
    return value


def names_of(path):
    """What may stand for a field in a message: its name, or a section around it, as a pattern each."""
    sections = [shown(path[:end]) for end in range(3, len(path))]
    name = [part for part in path if part != ITEM][-1]
    return [rf"\b{name}\b", *(re.escape(section).replace(r"\[\]", r"\[0\]") for section in sections)]


def shown(path):
    return ".".join(path).replace("." + ITEM, ITEM)


def named_in(said):
    """The fields that a config's mistakes are of, as `shown` has them."""
    found = re.findall(r"^(?:error: )?\S+\.yaml:\d+:\d+: ([\w.\[\]]+): ", said, re.M)
    return {re.sub(r"\[\d+\]", ITEM, path) for path in found}


class BoundaryValuesTest(runs.RunTest):

    def setUp(self):
        super().setUp()
        text_pairs.write_pairs(self.folder / "pairs.jsonl", 64)
        tokens = [i * 7 % 256 for i in range(4000)]
        (self.folder / "tokens.bin").write_bytes(struct.pack("<4000H", *tokens))
        (self.folder / "llmc.bin").write_bytes(struct.pack("<256i", 20240520, 1, 4000, *[0] * 253)
                                               + struct.pack("<4000H", *tokens))
        (self.folder / "set.bin").write_bytes(struct.pack("<4000H", *tokens))
        (self.folder / "set.idx").write_bytes(b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 8, 1, 2)
                                              + struct.pack("<i3q", 4000, 0, 0, 1))
        schema = json.loads(self.trainer("config", "schema").stdout)
        self.fields = {}
        for path, classes, bounds in numeric_fields(schema):
            kept = self.fields.setdefault((path, classes), [])
            kept += [bound for bound in bounds if bound not in kept]
        self.base = laid_over(yaml.safe_load(self.config), {
            "training": {"max_steps": 1, "gradient_accumulation_steps": None, "stop_on_nonfinite_loss": False},
            "validation": {"every_n_steps": 1, "max_batches": 1}})
        self.begun = 0
        self.refused = 0
        self.ended = []  # by this test, after LONGEST_SECONDS

    def config_with(self, path, classes, value):
        """A config that has the value there, and trains for a step as far as that value lets it."""
        return laid_over(self.config_for(path, classes), nested(path, value))

    def config_for(self, path, classes):
        """A config that trains for a step, in which a value at the path has an effect."""
        chosen = dict(classes)
        config = copy.deepcopy(self.base)
        task = chosen.get(("task",), "language_modeling")
        config = laid_over(config, TASKS[task])
        config = laid_over(config, MODELS.get(chosen.get(("model",)), {}))
        for begin, more in EFFECTS.items():
            if path[:len(begin)] == begin and not (begin == ("task", "data", "source") and task != "language_modeling"):
                config = laid_over(config, more)
        for place, name in classes:
            if place[0] not in ("task", "model") or len(place) > 1:
                config = laid_over(config, nested(place, {"name": name} | NEEDS.get(name, {})))
        return config

    def outcome(self, number, config, only_print):
        """(exit code or None, what it said) of a run with the config."""
        case, run = self.folder / f"{number}.yaml", self.folder / f"run_{number}"
        case.write_text(yaml.safe_dump(config))

        command = ["config", "print", case.name] if only_print else [case.name, f"exp_dir={run.name}"]
        with subprocess.Popen(["prlimit", f"--data={LARGEST_DATA}", runs.TRAINER, *command], cwd=self.folder, text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              env=os.environ | {"OMP_NUM_THREADS": "1", "PHALANX_GEMM": "default"}) as process:
            try:
                said = process.communicate(timeout=LONGEST_SECONDS)[0]
            except subprocess.TimeoutExpired:
                process.kill()
                said = process.communicate()[0]
                code = None
            else:
                code = process.returncode
        shutil.rmtree(run, ignore_errors=True)
        case.unlink()
        return code, said

    def tried(self, number, path, classes, value):
        """The outcome of a case."""
        config = self.config_with(path, classes, value)
        # More ranks than this machine has room for are none to start.
        code, said = self.outcome(number, config, only_print=path == ("launcher", "processes"))
        if code is None:  # A large model is drawn, or a long step computed: the value was taken.
            self.ended.append(f"{shown(path)}={value}")
            return self.outcome(number, config, only_print=True)
        return code, said

    def refused_together(self, number, cases):
        """Those of the cases, all in one config, that it is refused for by name."""
        config = self.config_for(*cases[0][:2])
        for path, _, value in cases:
            config = laid_over(config, nested(path, value))
        code, said = self.outcome(f"together_{number}", config, only_print=True)
        names = named_in(said) if code == 2 else set()
        return [case for case in cases if shown(case[0]) in names]

    def by_their_configs(self, cases):
        """Lists of cases that stand in one config: of different fields, and with the same others."""
        groups = collections.defaultdict(list)
        for case in cases:
            rounds = groups[json.dumps(self.config_for(*case[:2]), sort_keys=True)]
            free = next((one for one in rounds if all(case[0] != other[0] for other in one)), None)
            if free is None:
                rounds.append([case])
            else:
                free.append(case)
        return [one for rounds in groups.values() for one in rounds]

    def judge(self, path, code, said):
        if code == 0:
            self.begun += 1
            return
        if not re.search("^error: (step [0-9]+: )?out of memory in (step|validation)", said, re.M):
            self.assertEqual(code, 2, said)
        self.assertRegex(said, "|".join(names_of(path)))
        self.refused += 1

    def cases(self):
        for (path, classes), bounds in sorted(self.fields.items()):
            for value in VALUES + [bound for bound in bounds if bound not in VALUES]:
                yield path, classes, int(value) if isinstance(value, float) and value.is_integer() else value

    def field_named(self, name):
        return next((path, classes) for path, classes in self.fields
                    if shown(path) == name and ("model",) not in dict(classes) or shown(path) == name
                    and dict(classes).get(("model",)) == "gpt2")

    def test_values_are_refused_by_their_field_or_work(self):
        self.assertGreater(len(self.fields), 150)
        self.trainer("tiny.yaml", "exp_dir=first", "training.max_steps=1", "lr_scheduler.decay_steps=40")
        every = list(self.cases())
        chosen = every
        if FIELDS:
            chosen = [case for case in every if re.search(FIELDS, shown(case[0]))]
        elif not long.is_long():
            chosen = [(*self.field_named(name), value) for name, value in KNOWN]
            chosen += every[len(every) // (2 * SAMPLE)::len(every) // SAMPLE]
        long.tell_sample(len(chosen), len(every), "values")
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            if FIELDS or long.is_long():
                together = self.by_their_configs(chosen)
                refused = list(itertools.chain(*pool.map(self.refused_together, itertools.count(), together)))
                self.refused += len(refused)
                print(f"{len(refused)} refused by {len(together)} configs", flush=True)
                chosen = [case for case in chosen if not any(case is other for other in refused)]
            outcomes = pool.map(self.tried, itertools.count(), *zip(*chosen))
            for (path, classes, value), (code, said) in zip(chosen, outcomes, strict=True):
                with self.subTest(field=shown(path), classes=[name for _, name in classes], value=value):
                    self.judge(path, code, said)
                    if (shown(path), value) in REFUSED:  # by the config alone, so at once
                        self.assertEqual(code, 2, said)
                        self.assertIn(f"{shown(path)}: ", said)
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        print(f"{self.begun} begun, {self.refused} refused; {used.ru_utime + used.ru_stime:.0f} s of the processor;"
              f" ended after {LONGEST_SECONDS} s: {', '.join(self.ended) or 'none'}", flush=True)
        if not FIELDS:
            self.assertGreater(min(self.begun, self.refused), 0)


if __name__ == "__main__":
    runs.main()
