// SPDX-License-Identifier: Apache-2.0
#include "transform/targets/label_chain.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <utility>

#include "transform/drawer.h"
#include "transform/kernels/border_source.h"
#include "transform/operation/field_operations.h"
#include "transform/operation/inference.h"

namespace feedline::transform {
namespace {

// Returns the position in the mask of the label at this column and row of a drawing.
LabelPoint find_sample(const LabelDrawing& drawing, int column, int row) {
  if (column < 0 || row < 0) return {};
  if (drawing.warped.empty()) return {column, row};
  return drawing.warped[static_cast<std::size_t>(row) * static_cast<std::size_t>(drawing.warped_width) +
                        static_cast<std::size_t>(column)];
}

// Applies geometric operations to columns and rows.
class LabelBuilder final : public Canvas {
 public:
  LabelBuilder(Size mask, LabelDrawing& drawing) : drawing_(drawing) {
    all(drawing.columns, mask.width);
    all(drawing.rows, mask.height);
    drawing.warped.clear();
    drawing.decisions.clear();
  }

  Size size() const override { return drawing_.size(); }
  void crop(const Box& box) override {
    const auto keep = [](std::vector<int>& points, int first, int count) {
      std::copy_n(points.begin() + first, count, points.begin());
      points.resize(static_cast<std::size_t>(count));
    };
    keep(drawing_.columns, box.left, box.width);
    keep(drawing_.rows, box.top, box.height);
  }
  void resize(Size out, Interpolation /*interpolation*/) override {
    select(drawing_.columns, out.width, nearest);
    select(drawing_.rows, out.height, nearest);
  }
  void flip(bool x, bool y) override {
    if (x) std::ranges::reverse(drawing_.columns);
    if (y) std::ranges::reverse(drawing_.rows);
  }
  void pad(const Padding& padding, PaddingMode mode, const Colour& /*fill*/) override {
    const auto widen = [&](std::vector<int>& points, int before, int after) {
      const int in = static_cast<int>(points.size());
      select(points, before + in + after, [=](int i, int, int) { return border_source(i - before, in, mode); });
    };
    widen(drawing_.columns, padding.left, padding.right);
    widen(drawing_.rows, padding.top, padding.bottom);
  }
  void warp(const Warp& warp) override {
    const Size out = size_after(warp, size());
    std::vector<LabelPoint>& points = drawing_.warped_before;
    find_labels(warp, size(), drawing_.elastic, points);
    for (LabelPoint& point : points) point = in_mask(point);
    std::swap(points, drawing_.warped);
    drawing_.warped_width = out.width;
    all(drawing_.columns, out.width);
    all(drawing_.rows, out.height);
  }

 private:
  static void all(std::vector<int>& points, int count) {
    points.resize(static_cast<std::size_t>(count));
    std::iota(points.begin(), points.end(), 0);
  }
  // Returns the current source of this position.
  LabelPoint in_mask(const LabelPoint& point) const {
    if (point.x < 0) return {};
    return find_sample(drawing_, drawing_.columns[static_cast<std::size_t>(point.x)],
                       drawing_.rows[static_cast<std::size_t>(point.y)]);
  }
  // Like torch, computes the ratio and the product as floats.
  static int nearest(int i, int in, int out) {
    const float scale = static_cast<float>(in) / static_cast<float>(out);
    return std::min(static_cast<int>(std::floor(static_cast<float>(i) * scale)), in - 1);
  }
  // from(i, in, out): returns the source of position i, or a negative number if there is none.
  template <typename From>
  void select(std::vector<int>& points, int out, From from) {
    const int in = static_cast<int>(points.size());
    drawing_.before.assign(points.begin(), points.end());
    points.resize(static_cast<std::size_t>(out));
    for (int i = 0; i < out; ++i) {
      const int point = from(i, in, out);
      points[static_cast<std::size_t>(i)] =
          point < 0 ? LabelDrawing::kFill : drawing_.before[static_cast<std::size_t>(point)];
    }
  }

  LabelDrawing& drawing_;
};

template <typename Label>
void copy_labels(const LabelDrawing& drawing, memory::PixelView labels, std::byte* out) {
  for (const int y : drawing.rows) {
    if (y < 0) {
      out = std::fill_n(out, drawing.columns.size() * sizeof(Label), std::byte{0});
      continue;
    }
    const std::uint8_t* const row = labels.row(y);
    for (const int x : drawing.columns) {
      Label label{0};
      if (x >= 0) std::memcpy(&label, row + static_cast<std::size_t>(x) * sizeof(Label), sizeof label);
      std::memcpy(out, &label, sizeof label);
      out += sizeof label;
    }
  }
}

template <typename Label>
void copy_warped(const LabelDrawing& drawing, memory::PixelView labels, std::byte* out) {
  for (const int row : drawing.rows)
    for (const int column : drawing.columns) {
      const LabelPoint point = find_sample(drawing, column, row);
      Label label{0};
      if (point.x >= 0)
        std::memcpy(&label, labels.row(point.y) + static_cast<std::size_t>(point.x) * sizeof(Label), sizeof label);
      std::memcpy(out, &label, sizeof label);
      out += sizeof label;
    }
}

template <typename Label>
void move_labels(const LabelDrawing& drawing, memory::PixelView labels, std::byte* out) {
  drawing.warped.empty() ? copy_labels<Label>(drawing, labels, out) : copy_warped<Label>(drawing, labels, out);
}

}  // namespace

LabelChain::LabelChain(std::vector<Operation> operations, std::size_t first, std::optional<Size> size)
    : operations_(std::move(operations)), first_(first), size_(size) {}

Result<std::shared_ptr<const LabelChain>> LabelChain::compile(std::vector<Operation> operations, std::size_t first) {
  FEEDLINE_TRY(const Inferred inferred, infer(operations));
  for (const Operation& operation : operations)
    if (is_automatic(operation))
      return config_error(
          std::string(name_of(operation)) +
          ": it moves the pixels of images, and a mask cannot follow (nor in torchvision); leave it out, "
          "or limit it to images with fields=");
  return std::shared_ptr<const LabelChain>(new LabelChain(std::move(operations), first, inferred.size));
}

Result<void> LabelChain::draw(Size mask, const base::SampleKey& key, LabelDrawing& drawing) const {
  LabelBuilder builder(mask, drawing);
  Drawer drawer(0, key, drawing.decisions, builder, drawing.iou_crops);
  for (std::size_t i = first_; i < operations_.size(); ++i)
    FEEDLINE_CHECK_OK(drawer.draw(static_cast<int>(i), operations_[i]));
  return {};
}

void LabelChain::apply(const LabelDrawing& drawing, memory::PixelView labels, std::byte* out) {
  if (labels.channels == 1)
    move_labels<std::uint8_t>(drawing, labels, out);
  else
    move_labels<std::uint16_t>(drawing, labels, out);
}

}  // namespace feedline::transform
