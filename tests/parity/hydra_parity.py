# SPDX-License-Identifier: Apache-2.0
"""Overrides as Hydra and interpolations as OmegaConf read them: hydra_overrides.py,
hydra_override_errors.py and hydra_interpolations.py have the cases.

Both sides make the same of a case, or both refuse it, or it shows a difference that a row of
docs/overrides.md lists: then the two must differ. Every row is shown by some case. Random
overrides, which keep out of those rows, agree as well.
"""

import json
import os
import random
import subprocess
import sys
import warnings
from pathlib import Path

import yaml
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from tests.parity import hydra_interpolations, hydra_override_errors, hydra_overrides

RANDOM_OVERRIDES = 500
SEED = 6
REFUSED = "refused"
SWEEP = "a sweep"
# What the peers raise for a mistake of the user's. Their parsers warn of some more.
MISTAKES = (
    HydraException,
    OmegaConfBaseException,
    yaml.YAMLError,
    RecursionError,
    AssertionError,
    TypeError,
    ValueError,
)
PARSER = OverridesParser.create()


def comparable(tree):
    """JSON that tells 1, 1.0, "1" and true apart, as values and as keys, and keeps the order."""
    if isinstance(tree, dict):
        return [
            [key if isinstance(key, str) else {type(key).__name__: str(key)}, comparable(value)]
            for key, value in tree.items()
        ]
    if isinstance(tree, list):
        return {"list": [comparable(item) for item in tree]}
    return tree


def text_of(tree):
    return json.dumps(comparable(tree), ensure_ascii=False)


def peers_tree(case):
    """A probe's case as Hydra and OmegaConf see it: text, or REFUSED and why."""
    try:
        config = OmegaConf.create(case["yaml"])
        OmegaConf.set_struct(config, True)
        overrides = PARSER.parse_overrides(case["overrides"])
        if any(override.is_sweep_override() for override in overrides):
            return SWEEP, ""
        ConfigLoaderImpl._apply_overrides_to_config(overrides, config)
        return text_of(OmegaConf.to_container(config, resolve=case["resolve"])), ""
    except MISTAKES as error:
        return REFUSED, f"{type(error).__name__}: {error}"


def our_trees(probe, probe_cases):
    done = subprocess.run(
        [probe], input=json.dumps(probe_cases), capture_output=True, check=True, encoding="utf-8"
    )
    results = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(results) == len(probe_cases)
    return [
        (text_of(result["tree"]), "") if "tree" in result else (REFUSED, result["errors"][0])
        for result in results
    ]


def excerpt(result, other):
    """Why a result is none, or the entries at the top of its tree that the other has not."""
    tree, why = result
    if tree in (REFUSED, SWEEP):
        return f"{tree} {why}"
    known = [] if other[0] in (REFUSED, SWEEP) else [*map(json.dumps, json.loads(other[0]))]
    entries = [text for text in map(json.dumps, json.loads(tree)) if text not in known]
    return " ".join(entries)[:400]


class Comparison:
    """Counts what was compared and keeps what is not as expected."""

    def __init__(self, probe):
        self._probe = probe
        self.failures = []

    def compare(self, label, probe_cases, expect):
        """`expect` says of the two trees what is wrong with them; None for nothing."""
        for case, mine in zip(probe_cases, our_trees(self._probe, probe_cases)):
            theirs = peers_tree(case)
            wrong = expect(mine[0], theirs[0])
            if wrong:
                self.failures.append(
                    f"{label}: {wrong}\n  {case['shown']!r}\n"
                    f"  ours:   {excerpt(mine, theirs)}\n  theirs: {excerpt(theirs, mine)}"
                )
        print(f"{label}: {len(probe_cases)}")
        return len(probe_cases)


def same_trees(mine, theirs):
    if mine != theirs:
        return "the two differ"
    return "both refuse it" if mine == REFUSED else None


def both_refuse(mine, theirs):
    return None if mine == theirs == REFUSED else "it is not refused by both"


def same(mine, theirs):
    one_run = REFUSED if theirs == SWEEP else theirs
    return None if mine == one_run else "the two differ"


def different(mine, theirs):
    return "the two agree: the row does not hold" if mine == theirs else None


def override_case(overrides):
    overrides = [overrides] if isinstance(overrides, str) else list(overrides)
    return {
        "yaml": hydra_overrides.OVERRIDES_BASE,
        "overrides": overrides,
        "resolve": False,
        "shown": overrides,
    }


def document_case(document, shown):
    return {"yaml": document, "overrides": [], "resolve": True, "shown": shown}


def interpolation_cases(texts):
    """A scalar stands in a nested section and, unless it is relative, at the top too."""
    for text in texts:
        if "\n" in text:
            yield document_case(text, text)
            continue
        quoted = "'" + text.replace("'", "''") + "'"
        yield document_case(hydra_interpolations.INTERPOLATIONS_BASE.replace(" V\n", f" {quoted}\n"), text)
        if text not in hydra_interpolations.RELATIVE:
            at_top = hydra_interpolations.INTERPOLATIONS_BASE.replace(" V\n", " 0\n") + f"v: {quoted}\n"
            yield document_case(at_top, text)


class RandomOverrides:
    """Values that Hydra takes, and such with a mistake in their brackets and commas."""

    def __init__(self, seed):
        self._draw = random.Random(seed)

    def override(self):
        value = self._value(3)
        if self._draw.random() < 0.3 and "$" not in value:
            value = self._spoilt(value)
        return f"++q={value}"

    def _value(self, depth):
        kinds = [self._scalar] if depth == 0 else [self._scalar, self._list, self._map]
        return self._draw.choice(kinds)(depth)

    def _scalar(self, _depth):
        return self._draw.choice([self._number, self._word, self._text, self._quoted])()

    def _number(self):
        sign = self._draw.choice(["", "", "-", "+"])
        point = self._draw.choice(["", ".", ".0", "." + self._digits(3)])
        exponent = self._draw.choice(["", "", "E+5", "e-" + self._digits(1), "e1"])
        return sign + self._digits(12) + point + exponent

    def _digits(self, most):
        """No zeros: a comma before one would make a number with a leading zero."""
        return "".join(self._draw.choices("123456789", k=self._draw.randint(1, most)))

    def _word(self):
        return self._draw.choice(
            ["true", "false", "null", "NULL", "x", "a-b", "a_1", "yes", "???", "${s}", "x${d.b}/y"]
        )

    def _text(self):
        """Plain text with blanks and escapes inside."""
        pieces = ["a", "B", "7", ".", "/", "-", "_", "%", "*", "@", "|", ":", " ", "  ", "e1"]
        escapes = [r"\,", r"\=", r"\(", r"\)", r"\[", r"\]", r"\{", r"\}", r"\:", r"\ ", r"\\"]
        middle = self._draw.choices(pieces + escapes, k=self._draw.randint(0, 6))
        return "x" + "".join(middle) + "z"

    def _quoted(self):
        quote, other = self._draw.sample("'\"", 2)
        pieces = ["a", " ", ",", other, "\\", "\\\\", f"\\{quote}", "[", "}", "=", ":", "#", "ä"]
        inner = "".join(self._draw.choices(pieces, k=self._draw.randint(0, 7)))
        return quote + inner + quote

    def _list(self, depth):
        items = [self._value(depth - 1) for _ in range(self._draw.randint(0, 3))]
        return self._bracketed("[", items, "]")

    def _map(self, depth):
        keys = self._draw.sample(["k", "j", "a b", "x/y", r"c\,d", "Key", "under_score"], 3)
        items = [
            f"{key}{self._blanks()}:{self._blanks()}{self._value(depth - 1)}"
            for key in keys[: self._draw.randint(0, 3)]
        ]
        return self._bracketed("{", items, "}")

    def _bracketed(self, opening, items, closing):
        comma = f"{self._blanks()},{self._blanks()}"
        return f"{opening}{self._blanks()}{comma.join(items)}{self._blanks()}{closing}"

    def _blanks(self):
        return " " * self._draw.choice([0, 0, 1, 2])

    def _spoilt(self, value):
        """One bracket less, or one or a comma more; not behind a backslash, which would then escape
        something else.
        """
        places = [place for place in range(len(value) + 1) if not value[:place].endswith("\\")]
        brackets = [place for place in places if value[place : place + 1] in set("[]{}")]
        if brackets and self._draw.random() < 0.5:
            place = self._draw.choice(brackets)
            return value[:place] + value[place + 1 :]
        place = self._draw.choice(places)
        return value[:place] + self._draw.choice("[]{}(),") + value[place:]


def rows(document, title):
    """The names of a table's rows under a title."""
    section = document.split(f"## {title}", 1)[1].split("\n## ", 1)[0]
    names = [line.split("|")[1].strip() for line in section.splitlines() if line.startswith("|")]
    return set(names) - {"", "---"}


def check_rows(document, title, differences):
    documented = rows(document, title)
    assert documented == set(differences), f"{title}: {documented ^ set(differences)}"


def compare_tables(comparison, kind, cases_of, *tables):
    for table, expect in tables:
        label = f"{kind}, {expect.__name__.replace('_', ' ')}"
        total = sum(
            comparison.compare(f"{label}: {name}", cases_of(group), expect)
            for name, group in table.items()
        )
        print(f"{label}: {total} in all", flush=True)


def main():
    warnings.simplefilter("ignore")
    probe, document = sys.argv[1], Path(sys.argv[2]).read_text(encoding="utf-8")
    check_rows(document, "Where this parts from Hydra", hydra_override_errors.OVERRIDE_DIFFERENCES)
    check_rows(document, "Where interpolation parts from", hydra_interpolations.INTERPOLATION_DIFFERENCES)
    os.environ.update(hydra_interpolations.ENVIRONMENT)
    os.environ.pop("PEER_UNSET", None)

    comparison = Comparison(probe)
    compare_tables(
        comparison,
        "overrides",
        lambda group: [override_case(case) for case in group],
        (hydra_overrides.OVERRIDES, same_trees),
        (hydra_override_errors.REFUSED_OVERRIDES, both_refuse),
        (hydra_override_errors.OVERRIDE_DIFFERENCES, different),
    )
    compare_tables(
        comparison,
        "interpolations",
        lambda group: list(interpolation_cases(group)),
        (hydra_interpolations.INTERPOLATIONS | {"relative": hydra_interpolations.RELATIVE}, same_trees),
        (hydra_interpolations.REFUSED_INTERPOLATIONS, both_refuse),
        (hydra_interpolations.INTERPOLATION_DIFFERENCES, different),
    )
    generator = RandomOverrides(SEED)
    random_cases = [override_case(generator.override()) for _ in range(RANDOM_OVERRIDES)]
    comparison.compare(f"random overrides (seed {SEED})", random_cases, same)
    print("\n".join(comparison.failures))
    assert not comparison.failures, f"{len(comparison.failures)} cases are not as expected"


if __name__ == "__main__":
    main()
