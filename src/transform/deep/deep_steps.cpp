// SPDX-License-Identifier: Apache-2.0
#include "transform/deep/deep_steps.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "transform/deep/deep_numbers.h"
#include "transform/kernels/border_source.h"
#include "transform/kernels/pixel_ops/geometry.h"
#include "transform/kernels/pixel_ops/pixel_kernels.h"
#include "transform/kernels/variants.h"

namespace feedline::transform {
namespace {

// The image on which the steps operate, as WorkingImage for 8-bit pixels.
class DeepImage {
 public:
  DeepImage(const memory::DeepView& decoded, const DeepOutput& output, DeepWorkspace& workspace)
      : view_(decoded), in_doubles_(is_wide(output.stored())), workspace_(workspace) {}

  const memory::DeepView& view() const { return view_; }
  bool in_doubles() const { return in_doubles_; }

  Result<void> operator()(const CropStep& step) {
    view_.bytes.data = pixel(step.box.left, step.box.top);
    view_.bytes.width = step.box.width;
    view_.bytes.height = step.box.height;
    return {};
  }
  Result<void> operator()(const FlipStep& step) {
    FEEDLINE_TRY(memory::PixelBuffer* const out, room(view_.width(), view_.height(), view_.dtype));
    for (int y = 0; y < view_.height(); ++y) {
      const int from_y = step.y ? view_.height() - 1 - y : y;
      std::uint8_t* to = out->row(y);
      if (!step.x) {
        std::memcpy(to, view_.bytes.row(from_y), pixel_bytes() * static_cast<std::size_t>(view_.width()));
        continue;
      }
      for (int x = view_.width() - 1; x >= 0; --x, to += pixel_bytes())
        std::memcpy(to, pixel(x, from_y), pixel_bytes());
    }
    return show(*out, view_.dtype);
  }
  Result<void> operator()(const PadStep& step) {
    const Box& window = step.window;
    FEEDLINE_TRY(memory::PixelBuffer* const out, room(window.width, window.height, view_.dtype));
    const std::byte* const fill = fill_of(step.fill);
    std::vector<int>& columns = workspace_.border_map;
    columns.resize(static_cast<std::size_t>(window.width));
    for (int x = 0; x < window.width; ++x)
      columns[static_cast<std::size_t>(x)] =
          border_source(window.left + x - step.padding.left, view_.width(), step.mode);
    for (int y = 0; y < window.height; ++y) {
      const int from_y = border_source(window.top + y - step.padding.top, view_.height(), step.mode);
      std::uint8_t* to = out->row(y);
      for (const int x : columns) {
        if (x < 0 || from_y < 0)
          std::memcpy(to, fill, pixel_bytes());
        else
          std::memcpy(to, pixel(x, from_y), pixel_bytes());
        to += pixel_bytes();
      }
    }
    return show(*out, view_.dtype);
  }
  Result<void> operator()(const ResizeStep& step) {
    DeepResizer& resizer = workspace_.resizer;
    resizer.begin(step, view_, in_doubles_);
    FEEDLINE_TRY(memory::PixelBuffer* const out, room(step.window.width, step.window.height, resizer.dtype()));
    const std::size_t row_bytes =
        static_cast<std::size_t>(out->channels()) * static_cast<std::size_t>(step.window.width);
    for (int y = 0; y < step.window.height; ++y) std::memcpy(out->row(y), resizer.row(y), row_bytes);
    return show(*out, resizer.dtype());
  }
  Result<void> operator()(const PixelStep& step) {
    if (const auto* const affine = std::get_if<pixel_op::Affine>(&step.operation)) return warp(*affine);
    if (const auto* const rotation = std::get_if<pixel_op::Rotate>(&step.operation)) return rotate(*rotation);
    const auto* const perspective = std::get_if<pixel_op::Perspective>(&step.operation);
    FEEDLINE_CHECK(perspective != nullptr);  // infer() refuses all others
    return warp(*perspective);
  }
  template <typename Step>
  Result<void> operator()(const Step&) {
    FEEDLINE_CHECK(!"infer() refuses the operation");
  }

 private:
  std::size_t pixel_bytes() const { return static_cast<std::size_t>(view_.bytes.channels); }
  const std::uint8_t* pixel(int x, int y) const {
    return view_.bytes.row(y) + static_cast<std::size_t>(x) * pixel_bytes();
  }

  // Returns the buffer that is not viewed, resized.
  Result<memory::PixelBuffer*> room(int width, int height, DType dtype) {
    memory::PixelBuffer& out = workspace_.images[current_ == 0 ? 1 : 0];
    FEEDLINE_CHECK_OK(out.resize(width, height, view_.channels * static_cast<int>(size_of(dtype))));
    return &out;
  }
  Result<void> show(memory::PixelBuffer& out, DType dtype) {
    current_ = &out == &workspace_.images[0] ? 0 : 1;
    view_ = {out.view(), dtype, view_.channels};
    return {};
  }

  // Returns a pixel of the view's dtype. Images with 3 channels have a fill colour; all others, its first value.
  const std::byte* fill_of(const Colour& fill) {
    workspace_.fill.resize(pixel_bytes());
    for (std::size_t c = 0; c < static_cast<std::size_t>(view_.channels); ++c)
      with_number_type(view_.dtype, [&]<typename T>(T) {
        const T value = number_to<T>(static_cast<float>(fill[view_.channels == 3 ? c : 0]));
        std::memcpy(&workspace_.fill[c * sizeof(T)], &value, sizeof value);
      });
    return workspace_.fill.data();
  }

  Result<void> rotate(const pixel_op::Rotate& rotation) {
    using Kind = RotationPlan::Kind;
    const RotationPlan plan =
        plan_rotation({view_.height(), view_.width()}, rotation.angle, rotation.expand, rotation.center);
    if (plan.kind == Kind::kCopy) return {};
    if (plan.kind == Kind::kAffine)
      return warp(pixel_op::Affine{plan.matrix, rotation.interpolation, rotation.fill, plan.out});
    if (plan.kind == Kind::kHalf) return (*this)(FlipStep{true, true});
    FEEDLINE_TRY(memory::PixelBuffer* const out, room(plan.out.width, plan.out.height, view_.dtype));
    const bool is_clockwise = plan.kind == Kind::kThreeQuarters;
    for (int y = 0; y < plan.out.height; ++y) {
      const int column = is_clockwise ? y : view_.width() - 1 - y;
      std::uint8_t* to = out->row(y);
      for (int x = 0; x < plan.out.width; ++x, to += pixel_bytes())
        std::memcpy(to, pixel(column, is_clockwise ? view_.height() - 1 - x : x), pixel_bytes());
    }
    return show(*out, view_.dtype);
  }

  Result<void> warp(const pixel_op::Affine& affine) {
    return warp(affine.size.value_or(Size{view_.height(), view_.width()}), affine.interpolation, affine.fill,
                [&](int y, int width, double* xs, double* ys) {
                  active_kernels().pixels->affine_points(affine.matrix.data(), y, width, xs, ys);
                });
  }
  Result<void> warp(const pixel_op::Perspective& perspective) {
    return warp(perspective.size.value_or(Size{view_.height(), view_.width()}), perspective.interpolation,
                perspective.fill, [&](int y, int width, double* xs, double* ys) {
                  active_kernels().pixels->perspective_points(perspective.coefficients.data(), y, width, xs, ys);
                });
  }
  // points: computes the source positions of a row, at the centres of pixels plus 0.5.
  template <typename Points>
  Result<void> warp(Size size, Interpolation interpolation, const Colour& fill, Points points) {
    const bool is_nearest = interpolation == Interpolation::kNearest;
    const DType dtype = is_nearest ? view_.dtype : in_doubles_ ? DType::kFloat64 : DType::kFloat32;
    FEEDLINE_TRY(memory::PixelBuffer* const out, room(size.width, size.height, dtype));
    workspace_.xs.resize(static_cast<std::size_t>(size.width));
    workspace_.ys.resize(static_cast<std::size_t>(size.width));
    const std::byte* const fill_pixel = fill_of(fill);
    for (int y = 0; y < size.height; ++y) {
      points(y, size.width, workspace_.xs.data(), workspace_.ys.data());
      if (is_nearest)
        sample_nearest(fill_pixel, size.width, out->row(y));
      else
        with_number_type(view_.dtype, [&]<typename T>(T) {
          if (in_doubles_)
            sample_between<T>(fill, size.width, reinterpret_cast<double*>(out->row(y)));
          else
            sample_between<T>(fill, size.width, reinterpret_cast<float*>(out->row(y)));
        });
    }
    return show(*out, dtype);
  }
  bool is_inside(double x, double y) const { return x >= 0 && x < view_.width() && y >= 0 && y < view_.height(); }
  void sample_nearest(const std::byte* fill, int count, std::uint8_t* out) const {
    for (int i = 0; i < count; ++i, out += pixel_bytes()) {
      const double x = workspace_.xs[static_cast<std::size_t>(i)], y = workspace_.ys[static_cast<std::size_t>(i)];
      if (is_inside(x, y))
        std::memcpy(out, pixel(static_cast<int>(x), static_cast<int>(y)), pixel_bytes());
      else
        std::memcpy(out, fill, pixel_bytes());
    }
  }
  // Interpolates bilinearly, and repeats pixels at the borders, as Pillow does.
  template <typename T, typename Work>
  void sample_between(const Colour& fill, int count, Work* out) const {
    const auto channels = static_cast<std::size_t>(view_.channels);
    for (int i = 0; i < count; ++i, out += channels) {
      const double x = workspace_.xs[static_cast<std::size_t>(i)], y = workspace_.ys[static_cast<std::size_t>(i)];
      if (!is_inside(x, y)) {
        for (std::size_t c = 0; c < channels; ++c) out[c] = static_cast<Work>(fill[channels == 3 ? c : 0]);
        continue;
      }
      const double left = std::floor(x - 0.5), top = std::floor(y - 0.5);
      const auto across = static_cast<Work>(x - 0.5 - left), down = static_cast<Work>(y - 0.5 - top);
      const int column = static_cast<int>(left), row = static_cast<int>(top);
      const auto from = static_cast<std::size_t>(std::max(column, 0)) * channels;
      const auto to = static_cast<std::size_t>(std::min(column + 1, view_.width() - 1)) * channels;
      const T* const above = view_.row<T>(std::max(row, 0));
      const T* const below = view_.row<T>(std::min(row + 1, view_.height() - 1));
      for (std::size_t c = 0; c < channels; ++c) {
        const auto mix = [&](const T* pixels) {
          const Work a = number_from<Work>(pixels[from + c]), b = number_from<Work>(pixels[to + c]);
          return a + (b - a) * across;
        };
        const Work a = mix(above), b = mix(below);
        out[c] = a + (b - a) * down;
      }
    }
  }

  memory::DeepView view_;
  const bool in_doubles_;
  DeepWorkspace& workspace_;
  int current_ = -1;  // index of the viewed buffer; -1: the caller's
};

}  // namespace

Result<void> run_deep_steps(const Drawing::Steps& steps, const memory::DeepView& decoded, const DeepOutput& output,
                            DeepWorkspace& workspace, ArrayView out) {
  std::span<const Step> list = steps.list;
  const ResizeStep* const last_resize = list.empty() ? nullptr : std::get_if<ResizeStep>(&list.back());
  if (last_resize != nullptr) list = list.first(list.size() - 1);
  DeepImage image(decoded, output, workspace);
  for (const Step& step : list) FEEDLINE_CHECK_OK(std::visit(image, step));

  const memory::DeepView& view = image.view();
  DeepResizer& resizer = workspace.resizer;
  Size size{view.height(), view.width()};
  if (last_resize != nullptr) {
    size = {last_resize->window.height, last_resize->window.width};
    resizer.begin(*last_resize, view, image.in_doubles());
  }
  FEEDLINE_CHECK(out.spec.dtype == output.dtype() && out.spec.shape == output.shape_of(size));
  for (int y = 0; y < size.height; ++y) {
    const std::byte* const row = last_resize != nullptr ? resizer.row(y) : view.row<std::byte>(y);
    output.write(last_resize != nullptr ? resizer.dtype() : view.dtype, row, steps.flip_y ? size.height - 1 - y : y,
                 steps.flip_x, size, workspace.row, out.data);
  }
  return {};
}

}  // namespace feedline::transform
