# SPDX-License-Identifier: Apache-2.0
"""The Python peers are there, at the pinned versions, and torch is the one that C++ links."""

import hydra
import omegaconf
import safetensors
import tensorboard
import torch
import transformers
from hydra.core.override_parser.overrides_parser import OverridesParser


def main():
    for module, version in ((torch, "2.11.0"), (transformers, None), (safetensors, None),
                            (tensorboard, None), (hydra, None), (omegaconf, None)):
        print(f"{module.__name__} {module.__version__} from {module.__file__}")
        if version and module.__version__.split("+")[0] != version:
            raise SystemExit(f"expected {module.__name__} {version}")
    total = torch.ones(2, 3).numpy().sum()
    print(f"sum of ones(2, 3) through numpy: {total}")
    if total != 6:
        raise SystemExit("numpy and torch disagree")
    # antlr4 is the one package that is built here: a mistake in that shows in its first parser.
    parsed = OverridesParser.create().parse_override("a=[1,{b: 2}]").value()
    print(f"a=[1,{{b: 2}}] through Hydra's grammar: {parsed}")
    if parsed != [1, {"b": 2}]:
        raise SystemExit("Hydra's grammar reads something else")


if __name__ == "__main__":
    main()
