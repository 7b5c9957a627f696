# SPDX-License-Identifier: Apache-2.0
"""Reads a checkpoint, as docs/checkpoint_format.md describes it, with nothing but safetensors."""

import json
import math
import pathlib
import re

import safetensors
import torch

DTYPES = {"F32": torch.float32, "F64": torch.float64, "U8": torch.uint8, "I64": torch.int64}


def stored_name(tensor, piece):
    """What the file calls the tensor, or a box of it: "name[0:4,2:5]"."""
    if "box" not in piece:
        return tensor["name"]
    box = zip(piece["box"]["offsets"], piece["box"]["sizes"])
    return f"{tensor['name']}[{','.join(f'{offset}:{offset + size}' for offset, size in box)}]"


def elements_of(file, tensor, piece):
    """The elements of one slice, flat."""
    stored = stored_name(tensor, piece)
    if stored in file.keys():  # all of the tensor or box stands there
        return file.get_tensor(stored).reshape(-1)[piece["begin"] : piece["end"]]
    for name in file.keys():  # or a range of it: "name[begin:end]"
        match = re.fullmatch(re.escape(stored) + r"\[(\d+):(\d+)\]", name)
        if match and int(match[1]) <= piece["begin"] and piece["end"] <= int(match[2]):
            begin = piece["begin"] - int(match[1])
            return file.get_tensor(name)[begin : begin + piece["end"] - piece["begin"]]
    raise KeyError(stored)


def places_of(tensor, piece):
    """Where these elements stand in the whole tensor, flattened."""
    places = torch.arange(math.prod(tensor["shape"])).reshape(tensor["shape"])
    if "box" in piece:
        for dimension, start in enumerate(piece["box"]["offsets"]):
            places = places.narrow(dimension, start, piece["box"]["sizes"][dimension])
    return places.reshape(-1)[piece["begin"] : piece["end"]]


def read_checkpoint(folder):
    """The manifest, and all tensors by part and name."""
    folder = pathlib.Path(folder)
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["format_version"] in (2, 3)
    files = {
        name: safetensors.safe_open(folder / name, framework="pt")
        for name in manifest["files"]
        if name.endswith(".safetensors")
    }
    parts = {}
    for tensor in manifest["tensors"]:
        dtype = DTYPES[tensor["dtype"]]
        flat = torch.empty(math.prod(tensor["shape"]), dtype=dtype)
        for piece in tensor["slices"]:
            flat[places_of(tensor, piece)] = elements_of(files[piece["file"]], tensor, piece)
        parts.setdefault(tensor["part"], {})[tensor["name"]] = flat.reshape(tensor["shape"])
    return manifest, parts
