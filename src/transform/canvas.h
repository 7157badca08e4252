// SPDX-License-Identifier: Apache-2.0
#pragma once

// Receives drawn operations: as steps for an image, or as changes of the positions of labels, boxes or points, which
// move with the image.

#include <array>
#include <cstdint>
#include <optional>

#include "base/random.h"
#include "feedline/operation.h"
#include "feedline/pixel_operation.h"
#include "transform/augment/augmentation_level.h"
#include "transform/augment/sampling.h"
#include "transform/warp.h"

namespace feedline::transform {

struct Erasure;

// Used for one draw.
class Canvas {
 public:
  virtual Size size() const = 0;
  // True if positions are numbers, which may be outside of the image. torchvision's rules differ for these.
  virtual bool moves_numbers() const { return false; }

  virtual void crop(const Box& box) = 0;  // Requires: inside the image, unless moves_numbers()
  virtual void resize(Size out, Interpolation interpolation) = 0;
  virtual void flip(bool x, bool y) = 0;
  virtual void pad(const Padding& padding, PaddingMode mode, const Colour& fill) = 0;
  virtual void warp(const Warp& warp) = 0;

  // Colour changes, which move no pixels.
  virtual void grayscale(int /*channels*/) {}
  virtual void jitter(const JitterDrawing& /*drawing*/) {}
  virtual void permute_channels(const std::array<std::uint8_t, 3>& /*from*/) {}
  // Applies a geometric change with `interpolation`, and `fill` outside of the image.
  virtual void augment(const DrawnAugmentation&, Interpolation, const Colour& /*fill*/) {}
  // Requires: the operation does not change the size, and does the same to a mirrored image unless `moves`.
  virtual void change(const PixelOperation& /*operation*/, bool /*moves*/) {}
  // of_output: erases from the finished row instead of from pixels.
  virtual void erase(const Erasure& /*erasure*/, bool /*of_output*/) {}
  // Adds up several changed versions of the image. Each mix_add() starts again from the unchanged image.
  virtual void mix_begin(float /*weight*/, bool /*in_turn*/ = false) {}
  virtual void mix_add(float /*weight*/) {}
  virtual void mix_end(std::optional<float> /*blended*/) {}

  // For boxes. Returns false, and draws nothing, if the canvas has no boxes.
  virtual bool draw_iou_crop(const op::RandomIouCrop&, base::Random&, std::optional<Box>& /*crop*/) { return false; }
  virtual void clear_outside() {}  // of the last crop drawn by draw_iou_crop()
  virtual void sanitize(const op::SanitizeBoundingBoxes& /*least*/) {}

 protected:
  ~Canvas() = default;
};

}  // namespace feedline::transform
