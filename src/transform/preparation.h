// SPDX-License-Identifier: Apache-2.0
#pragma once

// The operations that precede a cache. They run once per image, so they cannot be random. These operations produce the
// 8-bit pixels that are cached. Sizes may differ between images.

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
  // kConfig: an operation is invalid or random, or its output is not 8-bit pixels.
  static Result<std::shared_ptr<const Preparation>> compile(std::span<const Operation> operations);

  ColorMode color_mode() const { return mode_; }  // the mode to decode to
  bool applies_exif() const { return applies_exif_; }
  int channels() const { return channels_; }  // of the output
  // Like Chain::draw, but returns the output size.
  Result<Size> draw(Size image, Drawing& drawing) const;
  // Runs the steps on `decoded` (the pixels of drawing.region), and writes contiguous rows of the size that draw()
  // returned to `out`.
  Result<void> apply(const Drawing& drawing, memory::PixelView decoded, Size size, Workspace& workspace,
                     std::span<std::byte> out) const;
  // Returns a text that describes everything that affects the pixels, apart from the stored image: equal texts mean
  // equal pixels.
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
