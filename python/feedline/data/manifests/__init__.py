# SPDX-License-Identifier: Apache-2.0
"""Manifests of speech data: NeMo, Kaldi, Lhotse, Common Voice and LibriSpeech."""
