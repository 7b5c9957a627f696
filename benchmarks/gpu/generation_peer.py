# SPDX-License-Identifier: Apache-2.0
"""generation_peer.py FOLDER DEVICE PROMPTS SHORT LONG: seconds that transformers takes to write texts, as JSON lines.

FOLDER is what `trainer checkpoint export` wrote, PROMPTS a list of token lists as JSON. Each line has a precision, a
batch, the seconds of a short and of a long text, and the tokens of the long one.
"""

import json
import sys
import time

import torch
from transformers import AutoModelForCausalLM


def write(model, prompts, length, device):
    """Returns the new tokens and the seconds, with what the device still had to do."""
    tokens = torch.tensor(prompts, device=device)
    began = time.perf_counter()
    rows = model.generate(tokens, attention_mask=torch.ones_like(tokens), max_new_tokens=length,
                          min_new_tokens=length, do_sample=False, pad_token_id=0, use_cache=True)
    new = rows[:, tokens.shape[1]:].tolist()  # waits for the device
    return new, time.perf_counter() - began


def main():
    folder, device, prompts, short, long = sys.argv[1:]
    # It makes a plan for each length: 20 tokens a second on an H200.
    torch.backends.cuda.enable_cudnn_sdp(False)
    prompts, short, long = json.loads(prompts), int(short), int(long)
    for precision in ("float32", "bfloat16"):
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=getattr(torch, precision)).to(device).eval()
        for batch in (1, len(prompts)):
            write(model, prompts[:batch], short, device)  # what is done once
            _, of_short = write(model, prompts[:batch], short, device)
            tokens, of_long = write(model, prompts[:batch], long, device)
            print(json.dumps({"precision": precision, "batch": batch, "short": of_short, "long": of_long,
                              "tokens": tokens}), flush=True)


main()
