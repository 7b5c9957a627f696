# SPDX-License-Identifier: Apache-2.0
"""Compares Gpt2 with transformers' GPT2LMHeadModel: initial weights, logits, loss, gradients.

A difference is the largest one of a tensor's elements, relative to the tensor's largest element.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch.nn import functional as F
from transformers import GPT2Config, GPT2LMHeadModel

LIMITS = {torch.float32: 1e-5, torch.float64: 1e-12}

TINY = GPT2Config(
    vocab_size=97, n_positions=32, n_embd=48, n_layer=3, n_head=4, n_inner=80,
    embd_pdrop=0, attn_pdrop=0, resid_pdrop=0, bos_token_id=None, eos_token_id=None,
)  # fmt: skip
GPT2_124M = GPT2Config(embd_pdrop=0, attn_pdrop=0, resid_pdrop=0)


def hugging_face(config, dtype):
    torch.manual_seed(1)
    model = GPT2LMHeadModel(config)
    return model.to(dtype).train()


def weights_of(model):
    """By the names that Phalanx uses: without `transformer.` and the tied head."""
    return {
        name.removeprefix("transformer."): tensor.detach().contiguous()
        for name, tensor in model.named_parameters()
    }


def run_probe(probe, *arguments):
    subprocess.run([probe, *map(str, arguments)], check=True)


def expected_results(model, tokens):
    logits = model(tokens, use_cache=False).logits
    # Not the model's own loss: that one goes through fp32, whatever the dtype.
    loss = F.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())
    loss.backward()
    results = {"logits": logits.detach(), "loss": loss.detach()}
    for name, parameter in model.named_parameters():
        results["gradient." + name.removeprefix("transformer.")] = parameter.grad
    return results


def relative_difference(found, expected):
    assert found.shape == expected.shape, (found.shape, expected.shape)
    assert found.dtype == expected.dtype, (found.dtype, expected.dtype)
    return ((found - expected).abs().max() / expected.abs().max()).item()


def compare_results(probe, folder, label, config, dtype, shape):
    torch.manual_seed(2)
    model = hugging_face(config, dtype)
    with torch.no_grad():  # zeros and ones would hide a mistake
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.add_(0.1 * torch.randn_like(parameter))
    tokens = torch.randint(config.vocab_size, shape)
    save_file(weights_of(model) | {"tokens": tokens}, folder / "input")
    run_probe(probe, folder / "input", folder / "output", config.n_head)
    found = load_file(folder / "output")
    expected = expected_results(model, tokens)
    assert found.keys() == expected.keys(), found.keys() ^ expected.keys()
    differences = {n: relative_difference(found[n], expected[n]) for n in expected}
    (folder / "output").unlink()

    gradients = {n: d for n, d in differences.items() if n.startswith("gradient.")}
    worst = max(gradients, key=gradients.get)
    print(
        f"{label} {dtype}: logits {differences['logits']:.1e}, loss {differences['loss']:.1e}, "
        f"{len(gradients)} gradients up to {gradients[worst]:.1e} ({worst})"
    )
    too_far = {n: d for n, d in differences.items() if not d <= LIMITS[dtype]}
    assert not too_far, f"above {LIMITS[dtype]}: {too_far}"


def kind_of(name):
    """The same for all layers: h.3.attn.c_attn.weight is an h.attn.c_attn.weight."""
    return ".".join(part for part in name.split(".") if not part.isdigit())


def by_kind(weights):
    kinds = {}
    for name, tensor in weights.items():
        kinds.setdefault(kind_of(name), []).append(tensor.flatten())
    return {kind: torch.cat(tensors) for kind, tensors in kinds.items()}


def compare_initial_weights(probe, folder, config):
    """Mean and standard deviation of each kind, within five standard errors."""
    expected_weights = weights_of(hugging_face(config, torch.float32))
    save_file(expected_weights, folder / "input")
    run_probe(probe, "initial", folder / "output", config.n_head, folder / "input", 0)
    weights = load_file(folder / "output")
    assert {n: t.shape for n, t in weights.items()} == {
        n: t.shape for n, t in expected_weights.items()
    }
    found, expected = by_kind(weights), by_kind(expected_weights)
    for kind, values in expected.items():
        mean, std, count = values.mean().item(), values.std().item(), values.numel()
        mean_difference = abs(found[kind].mean().item() - mean)
        std_difference = abs(found[kind].std().item() - std)
        print(f"initial {kind}: mean {mean:+.1e} ± {mean_difference:.0e}, std {std:.5f} ± {std_difference:.0e}")
        # The difference of two samples has sqrt(2) times the error of one.
        assert mean_difference <= 5 * std * (2 / count) ** 0.5, kind
        assert std_difference <= 5 * std * (1 / count) ** 0.5, kind


def main():
    probe = str(Path(sys.argv[1]).resolve())
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        compare_initial_weights(probe, folder, GPT2_124M)
        (folder / "output").unlink()
        compare_results(probe, folder, "tiny", TINY, torch.float32, (3, 32))
        compare_results(probe, folder, "tiny", TINY, torch.float64, (3, 32))
        compare_results(probe, folder, "124m", GPT2_124M, torch.float32, (1, 64))
        compare_results(probe, folder, "124m", GPT2_124M, torch.float64, (1, 64))


if __name__ == "__main__":
    main()
