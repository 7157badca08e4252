// SPDX-License-Identifier: Apache-2.0
#pragma once

// Receives drawn operations: as steps for an image, or as position changes for labels, boxes or points, which move with
// the image.

#include <array>
#include <cstdint>
#include <optional>

#include "base/random.h"
#include "feedline/error.h"
#include "feedline/operation.h"
#include "feedline/pixel_operation.h"
#include "memory/pixels.h"
#include "transform/augment/augmentation_level.h"
#include "transform/augment/sampling.h"
#include "transform/warp.h"

namespace feedline::transform {

struct Erasure;

// The numbers that an operation passes to its own kernel.
using KernelValues = std::array<double, 4>;

// A kernel that is defined in the file of its operation. A canvas stores a pointer to it.
struct OwnKernel {
  // Reads an image with 1 or 3 channels, and resizes `out` to its new size and the channels of `in`. `self` is this
  // kernel, which may be a derived one.
  Result<void> (*run)(const OwnKernel& self, const memory::PixelView& in, const KernelValues& values,
                      memory::PixelBuffer& out) = nullptr;
  bool works_in_place = true;  // whether `out` may be the buffer of `in`
  bool moves_pixels = false;   // if false, the kernel has the same effect on a mirrored image
};

// A canvas is used for one draw.
class Canvas {
 public:
  virtual Size size() const = 0;
  // Returns whether positions are numbers, which may be outside the image; torchvision has different rules for these.
  virtual bool moves_numbers() const { return false; }

  virtual void crop(const Box& box) = 0;  // Requires: inside the image, unless moves_numbers()
  virtual void resize(Size out, Interpolation interpolation) = 0;
  virtual void flip(bool x, bool y) = 0;
  virtual void pad(const Padding& padding, PaddingMode mode, const Colour& fill) = 0;
  virtual void warp(const Warp& warp) = 0;

  // The following functions change colours without moving pixels.
  virtual void grayscale(int /*channels*/) {}
  virtual void jitter(const JitterDrawing& /*drawing*/) {}
  void run(const OwnKernel& kernel, const KernelValues& values) { run(kernel, values, size()); }
  // out: the size of the kernel's output; if it may differ from size(), boxes and masks must be refused before.
  virtual void run(const OwnKernel& /*kernel*/, const KernelValues& /*values*/, Size /*out*/) {}
  // Applies a geometric change with `interpolation`, and `fill` outside the image.
  virtual void augment(const DrawnAugmentation&, Interpolation, const Colour& /*fill*/) {}
  // Requires: the operation does not change the size. Unless `moves` is true, the operation has the same effect on a
  // mirrored image.
  virtual void change(const PixelOperation& /*operation*/, bool /*moves*/) {}
  // of_output: erases pixels of the finished row instead of the image.
  virtual void erase(const Erasure& /*erasure*/, bool /*of_output*/) {}
  // Computes a weighted sum of several changed versions of the image. After each mix_add(), changes apply to the
  // unchanged image again.
  virtual void mix_begin(float /*weight*/, bool /*in_turn*/ = false) {}
  virtual void mix_add(float /*weight*/) {}
  virtual void mix_end(std::optional<float> /*blended*/) {}

  // For boxes. Returns false without drawing if the canvas has no boxes.
  virtual bool draw_iou_crop(const op::RandomIouCrop&, base::Random&, std::optional<Box>& /*crop*/) { return false; }
  virtual void clear_outside() {}  // of the last crop drawn by draw_iou_crop()
  virtual void sanitize(const op::SanitizeBoundingBoxes& /*least*/) {}

 protected:
  ~Canvas() = default;
};

}  // namespace feedline::transform
