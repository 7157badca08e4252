// SPDX-License-Identifier: Apache-2.0
#pragma once

// Canvases that move boxes and points when operations are drawn.

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "transform/augment/sampling.h"
#include "transform/canvas.h"
#include "transform/steps.h"
#include "transform/targets/target_chain.h"
#include "transform/targets/target_numbers.h"
#include "transform/targets/target_warp.h"

namespace feedline::transform {

// T is float or std::int64_t.
template <typename T>
class BoxBuilder final : public Canvas {
 public:
  BoxBuilder(Size image, const op::Boxes& boxes, TargetDrawing& drawing)
      : size_(image), format_(boxes.format), clamps_(boxes.clamps), drawing_(drawing) {}

  Size size() const override { return size_; }
  bool moves_numbers() const override { return true; }
  void crop(const Box& box) override {
    shift(-box.left, -box.top);
    become({box.height, box.width});
  }
  void resize(Size out, Interpolation /*interpolation*/) override {
    if (out.width == size_.width && out.height == size_.height) return;
    const float x = ratio_of(out.width, size_.width), y = ratio_of(out.height, size_.height);
    each([=](BoxNumbers<T>& box) {
      box = {scaled(box[0], x), scaled(box[1], y), scaled(box[2], x), scaled(box[3], y)};
    });
    size_ = out;
  }
  void flip(bool x, bool y) override {
    if (x) each([this](BoxNumbers<T>& box) { mirror(box, 0, size_.width); });
    if (y) each([this](BoxNumbers<T>& box) { mirror(box, 1, size_.height); });
  }
  void pad(const Padding& padding, PaddingMode /*mode*/, const Colour& /*fill*/) override {
    shift(padding.left, padding.top);
    become(padded(size_, padding));
  }
  // As in torchvision, integers become floats either before or after the corners are moved.
  void warp(const Warp& warp) override {
    if (drawing_.rows.rows() > 0) {
      const PointMap map(warp, size_, drawing_.elastic);
      const Size canvas = canvas_after(warp, size_);
      each([&](BoxNumbers<T>& box) {
        const Corners<float> corners =
            map.converts_first() ? corners_of(floats_of(box), format_) : floats_of(corners_of(box, format_));
        Corners<float> moved = moved_corners(map, corners);
        if (clamps_) moved = clamped(moved, canvas);
        box = converted<T>(box_of(moved, format_));
      });
    }
    size_ = size_after(warp, size_);
  }
  void sanitize(const op::SanitizeBoundingBoxes& least) override {
    drawing_.begin_sanitizing();
    std::vector<std::uint32_t>& left = drawing_.left;
    left.clear();
    std::uint32_t row = 0;
    each([&](const BoxNumbers<T>& box) {
      if (is_sound(box, format_, size_, least)) left.push_back(row);
      ++row;
    });
    drawing_.keep_left();
  }
  bool draw_iou_crop(const op::RandomIouCrop& operation, base::Random& random, std::optional<Box>& crop) override {
    std::vector<Corners<T>>& corners = drawing_.corners<T>();
    corners.clear();
    each([&](const BoxNumbers<T>& box) { corners.push_back(corners_of(box, format_)); });
    crop = transform::draw_iou_crop<T>(operation, size_, corners, random, drawing_.inside);
    return true;
  }
  // Makes boxes whose centre is outside the crop empty, as torchvision does to mark them for sanitize_bounding_boxes.
  void clear_outside() override {
    std::size_t row = 0;
    each([&](BoxNumbers<T>& box) {
      if (!drawing_.inside[row++]) box = {};
    });
  }

 private:
  template <typename Change>
  void each(Change change) {
    const std::span<T> numbers = drawing_.rows.template numbers<T>();
    for (std::size_t i = 0; i < numbers.size(); i += 4) {
      BoxNumbers<T> box{numbers[i], numbers[i + 1], numbers[i + 2], numbers[i + 3]};
      change(box);
      std::ranges::copy(box, numbers.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  void shift(int x, int y) {
    const T dx = static_cast<T>(x), dy = static_cast<T>(y);
    const bool corners = format_ == BoxFormat::kXyxy;
    each([=](BoxNumbers<T>& box) {
      box[0] += dx;
      box[1] += dy;
      if (corners) box[2] += dx;
      if (corners) box[3] += dy;
    });
  }
  void become(Size size) {
    size_ = size;
    if (clamps_) each([this](BoxNumbers<T>& box) { box = clamped_box(box, format_, size_); });
  }
  // `at` is the direction: 0 is x, 1 is y.
  void mirror(BoxNumbers<T>& box, std::size_t at, int side) const {
    switch (format_) {
      case BoxFormat::kXyxy: {
        const T low = mirrored(box[at + 2], side);
        box[at + 2] = mirrored(box[at], side);
        box[at] = low;
        return;
      }
      case BoxFormat::kXywh:
        box[at] = mirrored(static_cast<T>(box[at] + box[at + 2]), side);
        return;
      case BoxFormat::kCxcywh:
        box[at] = mirrored(box[at], side);
        return;
    }
  }

  Size size_;
  BoxFormat format_;
  bool clamps_;
  TargetDrawing& drawing_;
};

// Points, which may move outside the image and stay there. T: float or std::int64_t.
template <typename T>
class PointBuilder final : public Canvas {
 public:
  PointBuilder(Size image, TargetDrawing& drawing)
      : size_(image), drawing_(drawing), numbers_(drawing.rows.template numbers<T>()) {}

  Size size() const override { return size_; }
  bool moves_numbers() const override { return true; }
  void crop(const Box& box) override {
    shift(-box.left, -box.top);
    size_ = {box.height, box.width};
  }
  void resize(Size out, Interpolation /*interpolation*/) override {
    if (out.width == size_.width && out.height == size_.height) return;
    const float x = ratio_of(out.width, size_.width), y = ratio_of(out.height, size_.height);
    each([=](T& px, T& py) {
      px = scaled(px, x);
      py = scaled(py, y);
    });
    size_ = out;
  }
  // Unlike boxes, points are mirrored between the centres of the outermost pixels.
  void flip(bool x, bool y) override {
    if (x) each([this](T& px, T&) { px = mirrored(px, size_.width - 1); });
    if (y) each([this](T&, T& py) { py = mirrored(py, size_.height - 1); });
  }
  void pad(const Padding& padding, PaddingMode /*mode*/, const Colour& /*fill*/) override {
    shift(padding.left, padding.top);
    size_ = padded(size_, padding);
  }
  void warp(const Warp& warp) override {
    if (!numbers_.empty()) {
      const PointMap map(warp, size_, drawing_.elastic);
      const auto [x, y] = map.origin();
      each([&](T& px, T& py) {
        const FloatPoint moved = map({static_cast<float>(px), static_cast<float>(py)}, false);
        px = converted<T>(moved[0] - x);
        py = converted<T>(moved[1] - y);
      });
    }
    size_ = size_after(warp, size_);
  }

 private:
  template <typename Change>
  void each(Change change) {
    for (std::size_t i = 0; i < numbers_.size(); i += 2) change(numbers_[i], numbers_[i + 1]);
  }
  void shift(int x, int y) {
    const T dx = static_cast<T>(x), dy = static_cast<T>(y);
    each([=](T& px, T& py) {
      px += dx;
      py += dy;
    });
  }

  Size size_;
  TargetDrawing& drawing_;
  std::span<T> numbers_;
};

}  // namespace feedline::transform
