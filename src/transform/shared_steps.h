// SPDX-License-Identifier: Apache-2.0
#pragma once

// The operations that precede the views of an image. These operations are drawn and run once per sample for any number
// of views, and produce the 8-bit pixels from which the views are made (Chain::compile_view).

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
  // Compiles the operations from `first` on, for pixels that Preparation has made with the earlier operations. kConfig:
  // an operation is invalid, or its output is not 8-bit pixels.
  static Result<std::shared_ptr<const SharedSteps>> compile(std::span<const Operation> operations,
                                                            std::size_t first = 0);

  ColorMode color_mode() const { return mode_; }  // the mode to decode to
  bool applies_exif() const { return applies_exif_; }
  Fidelity fidelity() const { return fidelity_; }
  // Draws for an image of this size, and sets drawing.size to the size of the output. part: the part of the output that
  // is needed, or nullptr for the whole output. The same key produces the same drawing. kData: as for Chain::draw.
  Result<void> draw(Size image, const base::SampleKey& key, const Box* part, Drawing& drawing) const;
  // Returns whether the output is the drawing's region without changes.
  static bool is_nothing(const Drawing& drawing);
  // Runs the steps on the pixels or planes of drawing.region. The output is valid as long as `decoded` and `out` are
  // valid. Requires for planes: drawing.planes is set, and no plane is coarser than it allows.
  Result<memory::PixelView> apply(const Drawing& drawing, memory::PixelView decoded, Workspace& workspace,
                                  AlignedVector<std::uint8_t>& out) const;
  Result<memory::PixelView> apply(const Drawing& drawing, const memory::Planes& decoded, Workspace& workspace,
                                  AlignedVector<std::uint8_t>& out) const;
  std::vector<DrawnValue> values(const Drawing& drawing) const;  // as text
  std::vector<std::string> explain() const;                      // one line each

 private:
  SharedSteps(std::vector<Operation> operations, std::size_t first, ColorMode mode, bool applies_exif,
              Fidelity fidelity, Emitter as_pixels);
  template <typename Decoded>
  Result<memory::PixelView> run(const Drawing& drawing, const Decoded& decoded, Workspace& workspace,
                                AlignedVector<std::uint8_t>& out) const;

  std::vector<Operation> operations_;
  std::size_t first_;  // number of operations before these
  ColorMode mode_;
  bool applies_exif_;
  Fidelity fidelity_;
  Emitter as_pixels_;  // of any size
};

}  // namespace feedline::transform
