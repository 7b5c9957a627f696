# SPDX-License-Identifier: Apache-2.0
"""Reads a checkpoint, as docs/checkpoint_format.md describes it, with nothing but safetensors."""

import json
import pathlib
import re

import safetensors
import torch


def tensor_in(file, tensor, piece):
    """The elements of one slice, flat."""
    if tensor["name"] in file.keys():  # the whole tensor stands there
        flat = file.get_tensor(tensor["name"]).reshape(-1)
        return flat[piece["begin"] : piece["end"]]
    for name in file.keys():  # or a range of it: "name[begin:end]"
        match = re.fullmatch(re.escape(tensor["name"]) + r"\[(\d+):(\d+)\]", name)
        if match and int(match[1]) <= piece["begin"] and piece["end"] <= int(match[2]):
            begin = piece["begin"] - int(match[1])
            return file.get_tensor(name)[begin : begin + piece["end"] - piece["begin"]]
    raise KeyError(tensor["name"])


def read_checkpoint(folder):
    """The manifest, and all tensors by part and name."""
    folder = pathlib.Path(folder)
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["format_version"] == 2
    files = {
        name: safetensors.safe_open(folder / name, framework="pt")
        for name in manifest["files"]
        if name.endswith(".safetensors")
    }
    parts = {}
    for tensor in manifest["tensors"]:
        pieces = [tensor_in(files[piece["file"]], tensor, piece) for piece in tensor["slices"]]
        dtype = {"F32": torch.float32, "U8": torch.uint8, "I64": torch.int64}.get(tensor["dtype"])
        flat = torch.cat(pieces) if pieces else torch.empty(0, dtype=dtype)
        parts.setdefault(tensor["part"], {})[tensor["name"]] = flat.reshape(tensor["shape"])
    return manifest, parts
