"""The training of data_parallel_peer_test.cc by PyTorch in Python: one process, its own AdamW.

usage: peer_adamw.py FOLDER

Reads raw little-endian files of FOLDER: parameters.f32 (in registration order), images.f32,
labels.i64, rates.f64 (learning rate of each step), settings.txt (steps, leaves, samples, max_norm,
weight_decay). Writes trained.f32 (parameters), norms.f64 (gradient norm of each step) and
losses.f64 (mean loss).
"""
import pathlib
import sys

import numpy as np
import torch
from torch import nn
import torch.nn.functional as F

folder = pathlib.Path(sys.argv[1])
torch.set_num_threads(1)
settings = (folder / "settings.txt").read_text().split()
steps, leaves, samples = map(int, settings[:3])
max_norm, weight_decay = map(float, settings[3:])


def read(name, dtype):
    return torch.from_numpy(np.fromfile(folder / name, dtype=dtype))


class SmallModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3)
        self.norm = nn.LayerNorm(400)
        self.hidden = nn.Linear(400, 48)
        self.out = nn.Linear(48, 10)

    def forward(self, x):
        return self.out(F.relu(self.hidden(self.norm(F.relu(self.conv(x)).flatten(1)))))


model = SmallModel()
nn.utils.vector_to_parameters(read("parameters.f32", np.float32), model.parameters())
images = read("images.f32", np.float32).view(steps, leaves * samples, 1, 12, 12)
labels = read("labels.i64", np.int64).view(steps, leaves * samples)
rates = read("rates.f64", np.float64).tolist()
optimizer = torch.optim.AdamW(model.parameters(), lr=1.0, weight_decay=weight_decay)
norms, losses = [], []
for step in range(steps):
    for group in optimizer.param_groups:
        group["lr"] = rates[step]
    optimizer.zero_grad()
    loss = F.cross_entropy(model(images[step]), labels[step])
    loss.backward()
    norms.append(nn.utils.clip_grad_norm_(model.parameters(), max_norm).item())
    losses.append(loss.item())
    optimizer.step()
trained = nn.utils.parameters_to_vector(model.parameters()).detach()
trained.numpy().tofile(folder / "trained.f32")
np.array(norms).tofile(folder / "norms.f64")
np.array(losses).tofile(folder / "losses.f64")
