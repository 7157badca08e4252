// SPDX-License-Identifier: Apache-2.0
#pragma once

// The geometric operations of a chain, for labels (a segmentation mask). Labels are never mixed, so each operation only
// moves them. Nearly all operations treat the two directions independently, so a drawing has a source column for each
// output column, and a source row for each output row. A warp has a source position for each pixel; columns and rows
// then refer to the warp's result.

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

// Each thread reuses one object.
struct LabelDrawing {
  static constexpr int kFill = -1;  // label 0, for borders and for the outside of a warped mask
  std::vector<int> columns, rows;   // in the mask, or kFill
  std::vector<LabelPoint> warped;   // positions in the mask, row by row; empty without a warp
  int warped_width = 0;
  std::vector<int> before;  // scratch
  std::vector<LabelPoint> warped_before;
  ElasticScratch elastic;
  std::vector<Decision> decisions;  // scratch
  IouCrops* iou_crops = nullptr;    // as in Drawing
  Size size() const { return {static_cast<int>(rows.size()), static_cast<int>(columns.size())}; }
};

// Immutable and thread-safe once compiled.
class LabelChain {
 public:
  // Operations that are not geometric have no effect. Operations before `first` have already been applied to the masks.
  // The draws and the output equal those of the whole chain. kConfig: as for Chain::check, and for operations for which
  // is_automatic() returns true.
  static Result<std::shared_ptr<const LabelChain>> compile(std::vector<Operation> operations, std::size_t first = 0);

  const std::optional<Size>& size() const { return size_; }  // of the output; nullopt: the mask's own
  // Draws the same values for a mask of this size as Chain::draw for an image of this size. kData: as for Chain::draw.
  Result<void> draw(Size mask, const base::SampleKey& key, LabelDrawing& drawing) const;
  // Resizes like torch's "nearest", which torchvision uses for masks: label i of n is that at floor(i * (in / n)),
  // computed in single precision. Borders with padding_mode "constant" are 0, because `fill` is a colour. labels: one
  // byte per channel. Requires: `out` has memory for the size of the drawing.
  static void apply(const LabelDrawing& drawing, memory::PixelView labels, std::byte* out);

 private:
  LabelChain(std::vector<Operation> operations, std::size_t first, std::optional<Size> size);

  std::vector<Operation> operations_;
  std::size_t first_;
  std::optional<Size> size_;
};

}  // namespace feedline::transform
