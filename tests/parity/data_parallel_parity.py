# SPDX-License-Identifier: Apache-2.0
"""DataParallel beside what torch.nn.DataParallel states of itself, done by hand in Python.

On a CPU torch.nn.DataParallel runs the module itself. So its steps are written out here: scatter by
torch.chunk, replicas with the module's parameters, of which the first has its buffers and the others
copies, gather by torch.cat, and one backward pass into the module's parameters.
"""

import pathlib
import subprocess
import sys
import tempfile
import unittest

import torch
from safetensors.torch import load_file
from torch import nn

PROBE = sys.argv.pop(1)
STEPS, RATE, LIMIT = 5, 0.05, 1e-12


def wave(shape, phase):
    count = torch.Size(shape).numel()
    return torch.sin(torch.arange(count, dtype=torch.double) * 0.37 + phase).view(shape)


class Net(nn.Module):

    def __init__(self):
        super().__init__()
        self.first, self.norm, self.last = nn.Linear(10, 16), nn.BatchNorm1d(16), nn.Linear(16, 4)
        self.double()
        with torch.no_grad():
            for phase, parameter in enumerate(self.parameters()):
                parameter.copy_(wave(parameter.shape, phase) * 0.3)

    def forward(self, rows):
        return self.last(torch.tanh(self.norm(self.first(rows))))


def data_parallel(net, rows):
    parameters, buffers = dict(net.named_parameters()), dict(net.named_buffers())
    outputs = []
    for replica, chunk in enumerate(rows.chunk(2)):
        own = buffers if replica == 0 else {name: buffer.clone() for name, buffer in buffers.items()}
        outputs.append(torch.func.functional_call(net, (parameters, own), chunk))
    return torch.cat(outputs)


def trained(samples):
    net = Net()
    for step in range(STEPS):
        net.zero_grad()
        output = data_parallel(net, wave((samples, 10), step * 7))
        (output - wave((samples, 4), step * 7 + 1)).square().mean().backward()
        with torch.no_grad():
            for parameter in net.parameters():
                parameter -= RATE * parameter.grad
    gradients = {f"gradient.{name}": parameter.grad for name, parameter in net.named_parameters()}
    return net.state_dict() | gradients


class DataParallelParityTest(unittest.TestCase):

    def test_gradients_weights_and_batch_statistics(self):
        for samples in (8, 7, 4):
            with self.subTest(samples), tempfile.TemporaryDirectory() as folder:
                file = pathlib.Path(folder, "out.safetensors")
                subprocess.run([PROBE, file, str(STEPS), str(samples)], check=True)
                found, expected = load_file(file), trained(samples)
                self.assertEqual(sorted(found), sorted(expected))
                worst = max(((found[name] - value).abs().max() / value.abs().max().clamp(min=1)).item()
                            for name, value in expected.items())
                print(f"{samples} samples: {len(expected)} tensors, largest difference {worst:.1e}")
                self.assertLess(worst, LIMIT)
                self.assertEqual(found["norm.num_batches_tracked"].item(), STEPS)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
