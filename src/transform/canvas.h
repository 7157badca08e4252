// SPDX-License-Identifier: Apache-2.0
#pragma once

// What drawn operations are appended to: the steps of an image, or the places of labels, boxes or points, which move
// as the image does.

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

// Lives as long as one draw.
class Canvas {
 public:
  virtual Size size() const = 0;
  // Are places numbers, which may be outside of the image? torchvision's rules differ for these.
  virtual bool moves_numbers() const { return false; }

  virtual void crop(const Box& box) = 0;  // Requires: inside the image, unless numbers are moved
  virtual void resize(Size out, Interpolation interpolation) = 0;
  virtual void flip(bool x, bool y) = 0;
  virtual void pad(const Padding& padding, PaddingMode mode, const Colour& fill) = 0;
  virtual void warp(const Warp& warp) = 0;

  // Changes of colours, which leave every pixel in its place.
  virtual void grayscale(int /*channels*/) {}
  virtual void jitter(const JitterDrawing& /*drawing*/) {}
  virtual void permute_channels(const std::array<std::uint8_t, 3>& /*from*/) {}
  // Geometry by `interpolation`, with `fill` outside of the image.
  virtual void augment(const DrawnAugmentation&, Interpolation, const Colour& /*fill*/) {}
  // Leaves the size, and does the same to a mirrored image unless it moves pixels.
  virtual void change(const PixelOperation& /*operation*/, bool /*moves*/) {}
  // `of_output`: of the finished row; else of pixels.
  virtual void erase(const Erasure& /*erasure*/, bool /*of_output*/) {}
  // A sum of what `change` makes of the image: it begins again at each mix_add().
  virtual void mix_begin(float /*weight*/, bool /*in_turn*/ = false) {}
  virtual void mix_add(float /*weight*/) {}
  virtual void mix_end(std::optional<float> /*blended*/) {}

  // Boxes only. false: the canvas has no boxes, so that nothing is drawn.
  virtual bool draw_iou_crop(const op::RandomIouCrop&, base::Random&, std::optional<Box>& /*crop*/) { return false; }
  virtual void clear_outside() {}  // of the last crop that draw_iou_crop() drew
  virtual void sanitize(const op::SanitizeBoundingBoxes& /*least*/) {}

 protected:
  ~Canvas() = default;
};

}  // namespace feedline::transform
