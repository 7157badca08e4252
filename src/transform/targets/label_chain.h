// SPDX-License-Identifier: Apache-2.0
#pragma once

// The geometry of a chain for labels (a segmentation mask). Labels are never mixed, so each operation only moves them.
// Nearly all operations treat the two directions independently: a drawing is a source column for each output column and
// a source row for each output row. A warp maps each pixel; columns and rows then refer to the warp's result.

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/random.h"
#include "feedline/error.h"
#include "feedline/operation.h"
#include "memory/pixels.h"
#include "transform/steps.h"
#include "transform/targets/label_warp.h"

namespace feedline::transform {

// Each thread reuses one.
struct LabelDrawing {
  static constexpr int kFill = -1;  // label 0, for borders and for the outside of a warped mask
  std::vector<int> columns, rows;   // in the mask, or kFill
  std::vector<LabelPlace> warped;   // positions in the mask, row by row; empty without a warp
  int warped_width = 0;
  std::vector<int> before;  // scratch
  std::vector<LabelPlace> warped_before;
  ElasticScratch elastic;
  std::vector<Decision> decisions;  // likewise
  IouCrops* iou_crops = nullptr;    // as in Drawing
  Size size() const { return {static_cast<int>(rows.size()), static_cast<int>(columns.size())}; }
};

// Immutable and thread-safe once compiled.
class LabelChain {
 public:
  // Operations that are not geometric do nothing. Operations before `first` are already applied to the masks; the draws
  // and the output equal those of the whole chain. kConfig: as for Chain::check, and for operations that are
  // is_automatic().
  static Result<std::shared_ptr<const LabelChain>> compile(std::vector<Operation> operations, std::size_t first = 0);

  const std::optional<Size>& size() const { return size_; }  // of the output; nullopt: the mask's own
  // Draws the same values for a mask of this size as Chain::draw for an image of this size. kData: as for Chain::draw.
  Result<void> draw(Size mask, const base::SampleKey& key, LabelDrawing& drawing) const;
  // Resizes with torch's "nearest", as torchvision does for masks: label i of n comes from floor(i * (in / n)), in
  // single precision. Borders of padding_mode "constant" are 0, because `fill` is a colour. `labels`: one byte per
  // channel. Requires: `out` has room for the drawing's size.
  static void apply(const LabelDrawing& drawing, memory::PixelView labels, std::byte* out);

 private:
  LabelChain(std::vector<Operation> operations, std::size_t first, std::optional<Size> size);

  std::vector<Operation> operations_;
  std::size_t first_;
  std::optional<Size> size_;
};

}  // namespace feedline::transform
