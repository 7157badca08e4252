# SPDX-License-Identifier: Apache-2.0
"""Statistics of ImageNet's training images."""

# Per channel (red, green, blue), in units of [0, 1]; torchvision's values.
IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)
