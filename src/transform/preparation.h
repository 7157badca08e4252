// SPDX-License-Identifier: Apache-2.0
#pragma once

// The operations before a cache: done once per image, so without randomness, to 8-bit pixels that are kept. Sizes may
// differ from image to image.

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "feedline/error.h"
#include "feedline/operation.h"
#include "memory/pixels.h"
#include "transform/chain.h"

namespace feedline::transform {

// Immutable and thread-safe once compiled.
class Preparation {
 public:
  // kConfig: an operation at fault, a random one, or one that gives other values than 8-bit pixels.
  static Result<std::shared_ptr<const Preparation>> compile(std::span<const Operation> operations);

  ColorMode color_mode() const { return mode_; }  // what decode must deliver
  bool applies_exif() const { return applies_exif_; }
  int channels() const { return channels_; }  // that come out
  // As Chain::draw; gives the size that comes out.
  Result<Size> draw(Size image, Drawing& drawing) const;
  // Runs the steps on `decoded`, the pixels of drawing.region, into `out`: rows of `size`, what draw() gave, without
  // gaps between them.
  Result<void> apply(const Drawing& drawing, memory::PixelView decoded, Size size, Workspace& workspace,
                     std::span<std::byte> out) const;
  // Everything that the pixels depend on besides the stored image: two of the same text make the same pixels.
  std::string description() const;
  std::vector<std::string> explain() const;  // one line each

 private:
  Preparation(std::vector<Operation> operations, ColorMode mode, bool applies_exif, int channels);

  std::vector<Operation> operations_;
  ColorMode mode_;
  bool applies_exif_;
  int channels_;
};

}  // namespace feedline::transform
