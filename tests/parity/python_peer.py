# SPDX-License-Identifier: Apache-2.0
"""A plain PyTorch trainer for GPT-2 on bytes: what Phalanx is compared with.

The loop, model and optimizer are written as a script around torch usually is, with the operators
that Phalanx calls too, so that one run serves as a reference for values (tests/parity) and for
speed (benchmarks). Losses go to a file as JSON lines, one a step; see `main` for the options.
"""

import argparse
import contextlib
import json
import math
import time

import torch
from torch import nn
from torch.nn import functional as F


class Conv1D(nn.Module):
    """x W + b with W of shape [inputs, outputs], the layout of GPT-2's published weights."""

    def __init__(self, inputs, outputs, std):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(inputs, outputs).normal_(0, std))
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, x):
        rows = torch.addmm(self.bias, x.view(-1, x.size(-1)), self.weight)
        return rows.view(*x.shape[:-1], -1)


class Attention(nn.Module):
    def __init__(self, width, heads, std, projection_std):
        super().__init__()
        self.heads = heads
        self.c_attn = Conv1D(width, 3 * width, std)
        self.c_proj = Conv1D(width, width, projection_std)

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.c_attn(x).split(width, dim=2)
        q, k, v = (p.view(batch, length, self.heads, -1).transpose(1, 2) for p in parts)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.c_proj(mixed.transpose(1, 2).contiguous().view(batch, length, width))


class Mlp(nn.Module):
    def __init__(self, width, std, projection_std):
        super().__init__()
        self.c_fc = Conv1D(width, 4 * width, std)
        self.c_proj = Conv1D(4 * width, width, projection_std)

    def forward(self, x):
        return self.c_proj(F.gelu(self.c_fc(x), approximate="tanh"))


class Block(nn.Module):
    def __init__(self, width, heads, std, projection_std):
        super().__init__()
        self.ln_1 = nn.LayerNorm(width)
        self.attn = Attention(width, heads, std, projection_std)
        self.ln_2 = nn.LayerNorm(width)
        self.mlp = Mlp(width, std, projection_std)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class Gpt2(nn.Module):
    def __init__(self, vocabulary, positions, width, layers, heads, std=0.02):
        super().__init__()
        projection_std = std / math.sqrt(2 * layers)
        self.wte = nn.Embedding(vocabulary, width)
        self.wpe = nn.Embedding(positions, width)
        nn.init.normal_(self.wte.weight, std=std)
        nn.init.normal_(self.wpe.weight, std=std)
        self.h = nn.ModuleList(Block(width, heads, std, projection_std) for _ in range(layers))
        self.ln_f = nn.LayerNorm(width)

    def forward(self, tokens):
        x = self.wte(tokens) + self.wpe(torch.arange(tokens.size(1), device=tokens.device))
        for block in self.h:
            x = block(x)
        return F.linear(self.ln_f(x), self.wte.weight)


class Blocks:
    """Non-overlapping blocks of `context` bytes with the byte after each, in shuffled order."""

    def __init__(self, data, context, batch_size, seed, drop_last):
        self.data, self.context, self.batch_size = data, context, batch_size
        self.seed, self.drop_last = seed, drop_last
        self.samples = (len(data) - 1) // context

    def epoch(self, number):
        generator = torch.Generator().manual_seed(self.seed + number)
        order = torch.randperm(self.samples, generator=generator).tolist()
        for start in range(0, self.samples, self.batch_size):
            chosen = order[start : start + self.batch_size]
            if self.drop_last and len(chosen) < self.batch_size:
                return
            rows = [self.data[i * self.context : (i + 1) * self.context + 1] for i in chosen]
            batch = torch.stack(rows).long()
            yield batch[:, :-1], batch[:, 1:]

    def steps(self, accumulation):
        """Lists of micro-batches, one an optimizer step; the last of an epoch may be shorter."""
        epoch = 0
        while True:
            micro_batches = []
            for micro_batch in self.epoch(epoch):
                micro_batches.append(micro_batch)
                if len(micro_batches) == accumulation:
                    yield micro_batches
                    micro_batches = []
            if micro_batches:
                yield micro_batches
            epoch += 1


def read_text(path, validation_fraction):
    """The bytes of a file as a tensor, without the tail that is kept for validation."""
    with open(path, "rb") as file:
        data = torch.frombuffer(bytearray(file.read()), dtype=torch.uint8)
    return data[: len(data) - int(len(data) * validation_fraction)]


def parameter_groups(model, weight_decay):
    embeddings = {m.weight for m in model.modules() if isinstance(m, nn.Embedding)}
    decayed = [p for p in model.parameters() if p.dim() >= 2 and p not in embeddings]
    others = [p for p in model.parameters() if p.dim() < 2 or p in embeddings]
    return [
        {"params": decayed, "weight_decay": weight_decay},
        {"params": others, "weight_decay": 0.0},
    ]


def make_optimizer(options, model):
    groups = parameter_groups(model, options.weight_decay)
    if options.optimizer == "sgd":
        return torch.optim.SGD(groups, lr=options.lr, momentum=options.momentum, fused=True)
    kind = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[options.optimizer]
    return kind(groups, lr=options.lr, betas=(0.9, options.beta2), eps=options.eps, fused=True)


def learning_rate(options, step):
    """The learning rate of step `step`, counted from 1."""
    if step <= options.warmup_steps:
        return options.lr * (step / options.warmup_steps)
    if options.schedule == "constant":
        return options.lr
    progress = (step - options.warmup_steps) / (options.steps - options.warmup_steps)
    return options.lr * (0.5 * (1 + math.cos(math.pi * progress)))


LOW_PRECISION = {"bf16": torch.bfloat16, "fp16": torch.float16}


def autocast(options):
    """A context for a forward pass in the precision that is asked for."""
    if options.precision not in LOW_PRECISION:
        return contextlib.nullcontext()
    return torch.autocast(options.device, LOW_PRECISION[options.precision])


def make_scaler(options, kind=torch.amp.GradScaler):
    """fp16's loss scale; for other precisions one that changes nothing."""
    return kind(options.device, init_scale=options.init_scale,
                growth_interval=options.growth_interval, enabled=options.precision == "fp16")


class Updates:
    """Optimizer steps under a loss scale, and what became of them."""

    def __init__(self, optimizer, scaler):
        self.optimizer, self.scaler, self.skipped = optimizer, scaler, 0

    def step(self, clip):
        """`clip` is called on unscaled gradients."""
        scale = self.scaler.get_scale()
        self.scaler.unscale_(self.optimizer)
        clip()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.skipped += self.scaler.get_scale() < scale
        self.optimizer.zero_grad(set_to_none=True)

    def record(self):
        if not self.scaler.is_enabled():
            return {}
        return {"loss_scale": self.scaler.get_scale(), "skipped_steps": self.skipped}


def loss_of(logits, targets):
    """The mean over tokens, in single precision at least, as transformers has it."""
    if logits.dtype in LOW_PRECISION.values():
        logits = logits.float()
    return F.cross_entropy(logits.view(-1, logits.size(-1)), targets.reshape(-1))


def forward_loss(model, tokens, targets):
    return loss_of(model(tokens), targets)


def train_step(options, model, updates, micro_batches, step, compute=forward_loss):
    """One update; returns the mean loss over the step's tokens, a tensor, and the gradients' norm."""
    total_tokens = sum(targets.numel() for _, targets in micro_batches)
    step_loss, norm = None, None
    for tokens, targets in micro_batches:
        tokens, targets = tokens.to(options.device), targets.to(options.device)
        with autocast(options):
            loss = compute(model, tokens, targets)
        if len(micro_batches) > 1:
            loss = loss * (targets.numel() / total_tokens)
        updates.scaler.scale(loss).backward()
        step_loss = loss.detach() if step_loss is None else step_loss + loss.detach()

    def clip():
        nonlocal norm
        parameters = list(model.parameters())
        if options.clip_norm:
            norm = nn.utils.clip_grad_norm_(parameters, options.clip_norm).item()
        if options.clip_value:
            nn.utils.clip_grad_value_(parameters, options.clip_value)

    for group in updates.optimizer.param_groups:
        group["lr"] = learning_rate(options, step)
    updates.step(clip)
    return step_loss, norm


def train(options, model, blocks):
    updates = Updates(make_optimizer(options, model), make_scaler(options))
    compute = forward_loss
    if options.compile:
        compute = torch.compile(forward_loss, backend=options.compile)
    with open(options.losses, "w") as log:
        for step, micro_batches in enumerate(blocks.steps(options.accumulation), start=1):
            if step > options.steps:
                return
            began = time.time()
            loss, norm = train_step(options, model, updates, micro_batches, step, compute)
            if step % options.log_every != 0:
                continue
            record = {
                "step": step,
                "loss": loss.item(),
                "grad_norm": norm,
                "lr": learning_rate(options, step),
                "began": began,
                "ended": time.time(),
                **updates.record(),
            }
            print(json.dumps(record), file=log, flush=True)


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add = parser.add_argument
    add("--text", required=True, help="file of bytes")
    add("--losses", required=True, help="JSON lines to write")
    add("--initial-weights", help="safetensors to start from")
    add("--final-weights", help="safetensors to write")
    add("--layers", type=int, default=6)
    add("--heads", type=int, default=6)
    add("--width", type=int, default=384)
    add("--vocabulary", type=int, default=256)
    add("--context", type=int, default=256)
    add("--batch-size", type=int, default=8)
    add("--accumulation", type=int, default=1)
    add("--drop-last", action="store_true")
    add("--validation-fraction", type=float, default=0.0)
    add("--steps", type=int, required=True)
    add("--seed", type=int, default=0)
    add("--optimizer", choices=["sgd", "adam", "adamw"], default="adamw")
    add("--lr", type=float, default=1e-3)
    add("--momentum", type=float, default=0.9)
    add("--beta2", type=float, default=0.999)
    add("--eps", type=float, default=1e-8)
    add("--weight-decay", type=float, default=0.01)
    add("--schedule", choices=["constant", "cosine"], default="constant")
    add("--warmup-steps", type=int, default=0)
    add("--clip-norm", type=float)
    add("--clip-value", type=float)
    add("--double", action="store_true", help="weights and arithmetic in fp64")
    add("--precision", choices=["fp32", *LOW_PRECISION], default="fp32",
        help="of the forward pass; fp16 with a loss scale")
    add("--init-scale", type=float, default=65536.0)
    add("--growth-interval", type=int, default=2000)
    add("--log-every", type=int, default=1, help="steps; a GPU is waited for in these alone")
    add("--compile", metavar="BACKEND", help="of torch.compile, for the forward and backward pass")
    add("--threads", type=int, default=1)
    add("--device", choices=["cpu", "cuda"], default="cpu")
    return parser.parse_args()


def make_model(options):
    model = Gpt2(
        options.vocabulary, options.context, options.width, options.layers, options.heads
    )
    if options.initial_weights:
        from safetensors.torch import load_file

        model.load_state_dict(load_file(options.initial_weights))
    if options.double:
        model.double()
    return model.to(options.device)


def main():
    options = parse()
    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    model = make_model(options)
    data = read_text(options.text, options.validation_fraction)
    blocks = Blocks(data, options.context, options.batch_size, options.seed, options.drop_last)
    train(options, model, blocks)
    if options.final_weights:
        from safetensors.torch import save_file

        save_file(model.state_dict(), options.final_weights)


if __name__ == "__main__":
    main()
