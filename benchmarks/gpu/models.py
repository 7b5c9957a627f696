# SPDX-License-Identifier: Apache-2.0
"""Each model, task, optimizer and policy on the GPU, beside the same run on the CPU: float32, one seed, no dropout."""

import functools
import json
import re
from collections.abc import Callable

from kit import config_of, gpt2, largest_difference
from outcome import Ended, require
from runner import Item
from two_ranks import merged

SECONDS = 200
LIMIT, LIMIT_FP16 = 1e-4, 3e-2  # of a loss, relative
LIMITS = {"muon": 3e-2}  # of some cases: its updates are computed in bfloat16
CONTEXT = 64
END_OF_TEXT = 10  # a line is a document
ADAPTED = ["q_proj", "v_proj", "down_proj"]


def llama(**more):
    """Queries in groups, positions that are stretched, biases as in Qwen2."""
    return {"name": "llama", "vocab_size": 256, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
            "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64} | more


STRETCHED = {"rope_scaling": {"factor": 4.0, "original_max_position_embeddings": 16}}


def t5(**more):
    """356 tokens: bytes, and 100 sentinels."""
    return {"name": "t5", "vocab_size": 356, "d_model": 64, "d_kv": 16, "d_ff": 128, "num_layers": 2, "num_heads": 4,
            "dropout_rate": 0.0} | more


def steps(kit):
    return kit.size(6, 3)


def causal(model, **more):
    """A config on bytes, with `more` laid over it."""
    def config(kit, _):
        return merged(config_of(kit, small_gpt2(), steps(kit), 4) | {"model": model}, more)

    return config


def small_gpt2(vocabulary=256):
    return gpt2(vocabulary, CONTEXT, 2, 64, 4)


def lines_of(kit):
    """Beginnings of lines, short enough for a pair of them to be a sample."""
    with kit.text.open("rb") as file:
        return [line[: 10 + place % 20] for place, line in enumerate(file.read(1 << 16).splitlines()) if len(line) > 8]


def documents(how):
    """Lines as documents of tokens of two bytes each."""
    def config(kit, folder):
        path = folder / "documents.bin"
        tokens = b"\n".join(lines_of(kit)) + b"\n"
        path.write_bytes(b"".join(bytes((token, 0)) for token in tokens))
        source = {"name": "nanogpt", "files": [str(path)], "end_of_text": END_OF_TEXT}
        data = {"path": None, "source": source, "documents": how}
        return causal(small_gpt2(), task={"data": data})(kit, folder)

    return config


def write_pairs(kit, folder):
    """Lines, each with the one behind it."""
    path, lines = folder / "pairs.jsonl", [line.decode(errors="replace") for line in lines_of(kit)[:200]]
    path.write_text("".join(json.dumps({"first": a, "second": b}) + "\n" for a, b in zip(lines, lines[1:])))
    return {"files": [str(path)], "input": "{first}\n", "target": "{second}", "validation_fraction": 0}


def with_task(kit, model, task):
    return config_of(kit, small_gpt2(), steps(kit), 4) | {"model": model, "task": task}


def instructions(model):
    def config(kit, folder):
        data = {"tokenizer": "bytes", "end_of_text": 0, "pairs": write_pairs(kit, folder), "sequence_length": CONTEXT}
        return with_task(kit, model, {"name": "instruction_tuning", "data": data})

    return config


def pairs(model):
    def config(kit, folder):
        data = {"tokenizer": "bytes", "end_of_text": 1, "pairs": write_pairs(kit, folder), "input_length": CONTEXT,
                "target_length": 32}
        return with_task(kit, model, {"name": "sequence_to_sequence", "data": data})

    return config


def spans(kit, folder):
    source = {"name": "bytes", "files": [str(kit.text)]}
    data = {"tokenizer": "bytes", "end_of_text": 0, "input_length": CONTEXT,
            "span_corruption": {"source": source, "validation_fraction": 0}}
    return with_task(kit, t5(), {"name": "sequence_to_sequence", "data": data})


def adapters(kit, folder):
    """Beside a Llama of one step."""
    model = llama()
    base = causal(model, training={"max_steps": 1}, parallel={"device": "cpu"})(kit, folder)
    kit.train(folder / "base", base)
    lora = {"target_modules": ADAPTED, "r": 4, "lora_alpha": 8.0}
    return causal(model, lora=lora, optimizer={"lr": 1e-2},
                  checkpoint={"load_from": str(folder / "base/run")})(kit, folder)


def optimizer(**fields):
    """In place of AdamW with its fields."""
    def config(kit, folder):
        return causal(small_gpt2())(kit, folder) | {"optimizer": fields}

    return config


def recomputed(**policy):
    return causal(small_gpt2(), activation_checkpointing=policy)


# By item: the cases' configs, each made for a kit and a folder.
CASES: dict[str, dict[str, Callable]] = {
    "gpt2": {
        "joined": causal(small_gpt2()),
        "separated": documents("separated"),
        "padded": documents("padded"),
        "chunk-0": causal(small_gpt2(), task={"loss": {"chunk": 0}}),
        "chunk-24": causal(small_gpt2(), task={"loss": {"chunk": 24}}),
        "vocabulary-301": causal(small_gpt2(301)),
        "vocabulary-301-chunk-24": causal(small_gpt2(301), task={"loss": {"chunk": 24}}),
    },
    "llama": {
        "groups": causal(llama()),
        "stretched": causal(llama(**STRETCHED)),
        "biases": causal(llama(attention_qkv_bias=True, tie_word_embeddings=True)),
        "lora": adapters,
        "instructions": instructions(llama()),
    },
    "t5": {
        "pairs": pairs(t5()),
        "spans": spans,
        "v1.1": pairs(t5(feed_forward_proj="gated-gelu", tie_word_embeddings=False, scale_decoder_outputs=False)),
    },
    "optimizers": {
        "adafactor": optimizer(name="adafactor", lr=1e-2),
        "adagrad": optimizer(name="adagrad", lr=1e-2),
        "adam": optimizer(name="adam", lr=1e-3, weight_decay=0.01),
        "amsgrad": optimizer(name="adamw", lr=1e-3, amsgrad=True),
        "lion": optimizer(name="lion", lr=1e-4, weight_decay=0.1),
        "muon": optimizer(name="muon", lr=1e-3),
        "rmsprop": optimizer(name="rmsprop", lr=1e-3, momentum=0.9),
        "sgd": optimizer(name="sgd", lr=0.1),
        "nesterov": optimizer(name="sgd", lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
    },
    "checkpointing": {
        "unit": recomputed(policy="unit"),
        "every_n": recomputed(policy="every_n", n=2),
        "by_name": recomputed(policy="by_name", names=["h.1"]),
    },
    "tasks": {
        "instructions": instructions(small_gpt2()),
        "clipped": causal(small_gpt2(), training={"clip_grad_norm": 0.5, "gradient_accumulation_steps": 2}),
        "clipped-values": causal(small_gpt2(), training={"clip_grad_value": 1e-3}),
    },
}


def on(device, config):
    return merged(config, {"parallel": {"device": device}})


def compare(name, kit, report):
    """All cases, for one that differs to hide no other."""
    wrong = []
    for case, make in CASES[name].items():
        folder = kit.work / f"models-{name}-{case}"
        folder.mkdir()
        config = make(kit, folder)
        try:
            found = kit.train(folder / "gpu", on(kit.device, config))
            # In a dry run both are one: it is only to show that each config trains.
            is_needed = not kit.is_dry or case == next(iter(CASES[name]))
            expected = kit.train(folder / "cpu", on("cpu", config)) if is_needed else found
            require(len(found) == len(expected) == steps(kit), f"{len(found)} and {len(expected)} steps")
        except Ended as end:
            wrong.append(f"{case}: {end.result}: {end.reason}")
            continue
        difference = largest_difference(found, expected)
        report.note(**{case: difference})
        limit = LIMITS.get(case, LIMIT)
        if not difference <= limit:  # nor if it is NaN
            wrong.append(f"{case}: losses differ by {difference:.1e}, allowed are {limit:.0e}")
    require(not wrong, "; ".join(wrong))


def fp16(kit, report):
    """In float16 gradients are scaled, for small ones not to vanish: a first scale that is too large goes down."""
    folder = kit.work / "models-fp16"
    config = on(kit.device, causal(small_gpt2(), training={"max_steps": kit.size(20, 6)})(kit, folder))
    expected = kit.train(folder / "float32", config)
    half = {"enabled": True, "dtype": "float16", "init_scale": 1024.0, "growth_interval": kit.size(5, 2)}
    found = kit.train(folder / "float16", config | {"mixed_precision": half})
    difference = largest_difference(found, expected)
    report.note(losses_differ_by=difference, scales=[row["loss_scale"] for row in found],
                skipped=found[-1]["skipped_steps"], first_loss=found[0]["loss"], last_loss=found[-1]["loss"])
    require(found[-1]["loss"] < found[0]["loss"], "it does not learn")
    require(found[-1]["loss_scale"] > half["init_scale"], "the scale does not grow")
    require(difference <= LIMIT_FP16, f"losses differ by {difference:.1e} from float32, allowed are {LIMIT_FP16:.0e}")
    overflow = kit.train(folder / "overflow", config | {"mixed_precision": half | {"init_scale": 2.0**40}})
    report.note(skipped_of_a_large_scale=overflow[-1]["skipped_steps"])
    require(overflow[-1]["skipped_steps"] > 0, "gradients overflow with a scale of 2^40, and no step is skipped")
    require(overflow[-1]["loss_scale"] < 2.0**40, "the scale does not go down")


PROMPTS = ("The ", "A license", "This is a long")


def texts_of(kit, run, device):
    """What a run's model writes on a device, greedily."""
    prompts, texts = run.parent / "prompts.jsonl", run.parent / f"{device}.jsonl"
    prompts.write_text("".join(json.dumps({"prompt": text}) + "\n" for text in PROMPTS))
    texts.unlink(missing_ok=True)
    kit.run([kit.program("trainer"), "generate", str(run), f"--input={prompts}", f"--output={texts}",
             f"parallel.device={device}", f"max_new_tokens={kit.size(40, 12)}", "eos_token_id=[]"])
    return [json.loads(line)["generated"] for line in texts.read_text().splitlines()]


def loss_of(kit, run, device):
    """What evaluate says of a run."""
    output = kit.run([kit.program("trainer"), "evaluate", str(run), "--json", f"parallel.device={device}"])
    return float(re.search(r'"loss": *([-+.\de]+)', output)[1])


WRITERS = {"gpt2": causal(small_gpt2()), "llama": causal(llama(**STRETCHED)), "t5": pairs(t5())}


def write(kit, report):
    """One checkpoint, on both devices: the texts are the same, and the losses of a validation near each other."""
    wrong = []
    for name, make in WRITERS.items():
        folder = kit.work / f"models-write-{name}"
        folder.mkdir()
        more = {"training": {"max_steps": kit.size(60, 4)}, "task": {"data": {"validation_fraction": 0.01}},
                "validation": {"max_batches": 4}}
        if name == "t5":
            more["task"] = {"data": {"pairs": {"validation_fraction": 0.1}}}
        kit.train(folder, on("cpu", merged(make(kit, folder), more)))
        found, expected = (texts_of(kit, folder / "run", device) for device in (kit.device, "cpu"))
        same = [a == b for a, b in zip(found, expected, strict=True)]
        losses = [loss_of(kit, folder / "run", device) for device in (kit.device, "cpu")]
        difference = abs(losses[0] - losses[1]) / losses[1]
        report.note(**{f"{name}_same_texts": sum(same), f"{name}_validation_differs_by": difference})
        if not all(same) or len(same) != len(PROMPTS):
            report.note(**{f"{name}_texts": list(zip(found, expected))})
            wrong.append(f"{name}: {len(same) - sum(same)} of {len(same)} texts differ")
        if not difference <= LIMIT:
            wrong.append(f"{name}: validation losses differ by {difference:.1e}")
    require(not wrong, "; ".join(wrong))


MEANINGS = {"gpt2": "documents, chunks of logits, vocabularies", "llama": "groups of queries, positions, LoRA, answers",
            "t5": "pairs, spans, v1.1", "optimizers": "each optimizer", "checkpointing": "what is computed again",
            "tasks": "instruction tuning, clipping"}
ITEMS = [Item(f"models.{name}", f"losses as on the CPU: {MEANINGS[name]}", 20 + 8 * len(cases),
              functools.partial(compare, name)) for name, cases in CASES.items()]
ITEMS += [
    Item("models.write", "texts and validation as on the CPU", 75, write),
    Item("models.fp16", "float16 with its loss scale, beside float32", 40, fp16),
]
