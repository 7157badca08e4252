# SPDX-License-Identifier: Apache-2.0
"""Spoken words: WAV files become log-mel frames in one worker, which is busy but fast enough, and are the input of a
GRU.
"""

import wave

import numpy as np
import torch
from planting import amount, planted, stored

RATE, MELS = 16_000, 40
HIDDEN = 200 if planted("compute_bound") else 24


def record(folder):
    draw = np.random.default_rng(11)
    for number in range(48):
        pitch = draw.uniform(80, 400)
        sound = np.sin(np.arange(RATE * 2) * (2 * np.pi * pitch / RATE)) * 9000 + draw.normal(0, 900, RATE * 2)
        with wave.open(str(folder / f"{number:03}-{number % 12}.wav"), "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(RATE)
            file.writeframes(sound.astype("<i2").tobytes())


class Words(torch.utils.data.Dataset):
    def __init__(self, folder, count):
        self.paths, self.count = sorted(folder.glob("*.wav")), count
        bands = np.random.default_rng(0)
        self.mels = [np.abs(bands.standard_normal((size // 2 + 1, MELS))) for size in (512, 1024, 2048)]

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        path = self.paths[index % len(self.paths)]
        with wave.open(str(path), "rb") as file:
            sound = np.frombuffer(file.readframes(file.getnframes()), "<i2").astype(np.float32) / 32768
        spectra = [self.spectrum(sound, mel) for mel in self.mels]
        return torch.from_numpy(np.concatenate(spectra, 1).astype(np.float32)), int(path.stem.split("-")[1])

    def spectrum(self, sound, mel):
        size = 2 * (len(mel) - 1)
        frames = np.lib.stride_tricks.sliding_window_view(np.pad(sound, size), size)[:-size:160] * np.hanning(size)
        return np.log1p(np.abs(np.fft.rfft(frames)) ** 2 @ mel)[:200]


class Listener(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.memory = torch.nn.GRU(3 * MELS, HIDDEN, num_layers=2, batch_first=True)
        self.word = torch.nn.Linear(HIDDEN, 12)

    def forward(self, frames):
        return self.word(self.memory(frames)[0].mean(1))


if __name__ == "__main__":
    torch.set_num_threads(1)
    words = Words(stored("speech", record), amount(720, 48))
    model = Listener()
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    for frames, word in torch.utils.data.DataLoader(words, batch_size=12, shuffle=True, num_workers=1):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(frames), word).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
