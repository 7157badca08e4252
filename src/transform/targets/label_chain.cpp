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

// The position in the mask of the label at that column and row of a drawing.
LabelPlace place_of(const LabelDrawing& drawing, int column, int row) {
  if (column < 0 || row < 0) return {};
  if (drawing.warped.empty()) return {column, row};
  return drawing.warped[static_cast<std::size_t>(row) * static_cast<std::size_t>(drawing.warped_width) +
                        static_cast<std::size_t>(column)];
}

// Moves the columns and rows.
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
    const auto keep = [](std::vector<int>& places, int first, int count) {
      std::copy_n(places.begin() + first, count, places.begin());
      places.resize(static_cast<std::size_t>(count));
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
    const auto widen = [&](std::vector<int>& places, int before, int after) {
      const int in = static_cast<int>(places.size());
      select(places, before + in + after, [=](int i, int, int) { return border_source(i - before, in, mode); });
    };
    widen(drawing_.columns, padding.left, padding.right);
    widen(drawing_.rows, padding.top, padding.bottom);
  }
  void warp(const Warp& warp) override {
    const Size out = size_after(warp, size());
    std::vector<LabelPlace>& places = drawing_.warped_before;
    find_labels(warp, size(), drawing_.elastic, places);
    for (LabelPlace& place : places) place = in_mask(place);
    std::swap(places, drawing_.warped);
    drawing_.warped_width = out.width;
    all(drawing_.columns, out.width);
    all(drawing_.rows, out.height);
  }

 private:
  static void all(std::vector<int>& places, int count) {
    places.resize(static_cast<std::size_t>(count));
    std::iota(places.begin(), places.end(), 0);
  }
  // Looks up the current source of this position.
  LabelPlace in_mask(const LabelPlace& place) const {
    if (place.x < 0) return {};
    return place_of(drawing_, drawing_.columns[static_cast<std::size_t>(place.x)],
                    drawing_.rows[static_cast<std::size_t>(place.y)]);
  }
  // As in torch, the ratio and the product are floats.
  static int nearest(int i, int in, int out) {
    const float scale = static_cast<float>(in) / static_cast<float>(out);
    return std::min(static_cast<int>(std::floor(static_cast<float>(i) * scale)), in - 1);
  }
  // from(i, in, out): the source of position i; negative: none.
  template <typename From>
  void select(std::vector<int>& places, int out, From from) {
    const int in = static_cast<int>(places.size());
    drawing_.before.assign(places.begin(), places.end());
    places.resize(static_cast<std::size_t>(out));
    for (int i = 0; i < out; ++i) {
      const int place = from(i, in, out);
      places[static_cast<std::size_t>(i)] =
          place < 0 ? LabelDrawing::kFill : drawing_.before[static_cast<std::size_t>(place)];
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
      const LabelPlace place = place_of(drawing, column, row);
      Label label{0};
      if (place.x >= 0)
        std::memcpy(&label, labels.row(place.y) + static_cast<std::size_t>(place.x) * sizeof(Label), sizeof label);
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
