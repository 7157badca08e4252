// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a chain's geometry does to labels (a segmentation mask). Labels are never mixed, so every operation only says
// which label stands where. Nearly all do so in each direction by itself: a drawing is a source column for each column
// of the result, and a source row for each row. A warp gives a place to each pixel; columns and rows are then its.

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

// A thread keeps one and reuses it.
struct LabelDrawing {
  static constexpr int kFill = -1;  // a border's, whose label is 0; so is what a warp brings from outside
  std::vector<int> columns, rows;   // of the mask, or kFill
  std::vector<LabelPlace> warped;   // places in the mask, row by row; empty: nothing was warped
  int warped_width = 0;
  std::vector<int> before;  // scratch
  std::vector<LabelPlace> warped_before;
  ElasticScratch elastic;
  std::vector<Decision> decisions;  // likewise
  IouCrops* iou_crops = nullptr;    // as Drawing has it
  Size size() const { return {static_cast<int>(rows.size()), static_cast<int>(columns.size())}; }
};

// Immutable and thread-safe once compiled.
class LabelChain {
 public:
  // Operations that are not geometric do nothing. Those before `first` are done already, to the masks that come: what
  // is drawn, and what comes out, is what the whole chain gives. kConfig: as Chain::check, and one that is_automatic().
  static Result<std::shared_ptr<const LabelChain>> compile(std::vector<Operation> operations, std::size_t first = 0);

  const std::optional<Size>& size() const { return size_; }  // of what comes out; nullopt: as the masks have it
  // Draws for a mask of this size what Chain::draw draws for an image of it. kData: likewise.
  Result<void> draw(Size mask, const base::SampleKey& key, LabelDrawing& drawing) const;
  // Resizing is torch's "nearest", which torchvision uses for masks: label i of n comes from floor(i * (in / n)), in
  // single precision. Borders are 0 in padding_mode "constant", whatever `fill` is, as that is a colour.
  // `labels`: as many bytes each as it has channels. Requires: `out` has room for the drawing's size.
  static void apply(const LabelDrawing& drawing, memory::PixelView labels, std::byte* out);

 private:
  LabelChain(std::vector<Operation> operations, std::size_t first, std::optional<Size> size);

  std::vector<Operation> operations_;
  std::size_t first_;
  std::optional<Size> size_;
};

}  // namespace feedline::transform
