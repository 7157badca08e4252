// SPDX-License-Identifier: Apache-2.0
#pragma once

// The operations before the views of an image: drawn and done once per sample, whatever the number of views, to the
// 8-bit pixels that the views are made of (Chain::compile_view).

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/random.h"
#include "feedline/error.h"
#include "feedline/operation.h"
#include "memory/pixels.h"
#include "memory/planes.h"
#include "transform/chain.h"
#include "transform/kernels/aligned_vector.h"
#include "transform/kernels/emitter.h"

namespace feedline::transform {

// Immutable and thread-safe once compiled.
class SharedSteps {
 public:
  // The operations from `first` on, for pixels that Preparation made with those before. kConfig: an operation at fault,
  // or one that gives other values than 8-bit pixels.
  static Result<std::shared_ptr<const SharedSteps>> compile(std::span<const Operation> operations,
                                                            std::size_t first = 0);

  ColorMode color_mode() const { return mode_; }  // what decode must deliver
  bool applies_exif() const { return applies_exif_; }
  Fidelity fidelity() const { return fidelity_; }
  // Draws for an image of this size; drawing.size is that of what comes out. part: of what comes out, and all that is
  // made of it; nullptr: all of it. Same key, same drawing. kData: as Chain::draw.
  Result<void> draw(Size image, const base::SampleKey& key, const Box* part, Drawing& drawing) const;
  // Is the region of the drawing what comes out, as it is?
  static bool is_nothing(const Drawing& drawing);
  // Runs the steps on the pixels of drawing.region, or on planes of it. What comes out is valid as long as `decoded`
  // and `out`. Requires: of planes: drawing.planes, and none is coarser than that says.
  Result<memory::PixelView> apply(const Drawing& drawing, memory::PixelView decoded, Workspace& workspace,
                                  AlignedVector<std::uint8_t>& out) const;
  Result<memory::PixelView> apply(const Drawing& drawing, const memory::Planes& decoded, Workspace& workspace,
                                  AlignedVector<std::uint8_t>& out) const;
  std::vector<DrawnValue> values(const Drawing& drawing) const;  // in words
  std::vector<std::string> explain() const;                      // one line each

 private:
  SharedSteps(std::vector<Operation> operations, std::size_t first, ColorMode mode, bool applies_exif,
              Fidelity fidelity, Emitter as_pixels);
  template <typename Decoded>
  Result<memory::PixelView> run(const Drawing& drawing, const Decoded& decoded, Workspace& workspace,
                                AlignedVector<std::uint8_t>& out) const;

  std::vector<Operation> operations_;
  std::size_t first_;  // operations before these
  ColorMode mode_;
  bool applies_exif_;
  Fidelity fidelity_;
  Emitter as_pixels_;  // of any size
};

}  // namespace feedline::transform
