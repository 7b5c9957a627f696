"""The Python peers are there, at the pinned versions, and torch is the one that C++ links."""

import safetensors
import tensorboard
import torch
import transformers


def main():
    for module, version in ((torch, "2.11.0"), (transformers, None), (safetensors, None),
                            (tensorboard, None)):
        print(f"{module.__name__} {module.__version__} from {module.__file__}")
        if version and module.__version__.split("+")[0] != version:
            raise SystemExit(f"expected {module.__name__} {version}")
    total = torch.ones(2, 3).numpy().sum()
    print(f"sum of ones(2, 3) through numpy: {total}")
    if total != 6:
        raise SystemExit("numpy and torch disagree")


if __name__ == "__main__":
    main()
