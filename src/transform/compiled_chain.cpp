// SPDX-License-Identifier: Apache-2.0
#include "transform/compiled_chain.h"

#include <array>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "transform/drawer.h"
#include "transform/kernels/variants.h"
#include "transform/runner.h"

namespace feedline::transform {
namespace {

void append_jitter(std::string_view operation, const JitterDrawing& drawn, std::vector<DrawnValue>& values) {
  std::vector<double> order(drawn.order.begin(), drawn.order.end());
  values.push_back({std::string(operation), "order", std::move(order)});
  const auto add = [&](const char* name, const std::optional<double>& factor) {
    if (factor) values.push_back({std::string(operation), name, {*factor}});
  };
  add("brightness", drawn.brightness);
  add("contrast", drawn.contrast);
  add("saturation", drawn.saturation);
  add("hue", drawn.hue);
}

// The parameters, with the names that torchvision uses.
struct WarpValues {
  const std::string& operation;
  std::vector<DrawnValue>& values;

  void add(const char* name, std::vector<double> numbers) const {
    values.push_back({operation, name, std::move(numbers)});
  }
  void add(const char* name, std::span<const Point> points) const {
    std::vector<double> numbers;
    for (const Point& point : points) numbers.insert(numbers.end(), point.begin(), point.end());
    add(name, std::move(numbers));
  }
  void operator()(const AffineWarp& warp) const {
    add("angle", {warp.angle});
    add("translate", {warp.translate[0], warp.translate[1]});
    add("scale", {warp.scale});
    add("shear", {warp.shear[0], warp.shear[1]});
  }
  void operator()(const RotationWarp& warp) const { add("angle", {warp.angle}); }
  void operator()(const PerspectiveWarp& warp) const {
    add("startpoints", std::span<const Point>(warp.start));
    add("endpoints", std::span<const Point>(warp.end));
  }
  void operator()(const ElasticWarp& warp) const { add("stream", {static_cast<double>(warp.stream)}); }
};

// Returns Pillow's number of a filter.
double number_of(Interpolation interpolation) { return interpolation == Interpolation::kBicubic ? 3 : 2; }

}  // namespace

Result<Size> draw_operations(std::span<const Operation> operations, std::uint32_t first_stream, Size image,
                             const base::SampleKey& key, Drawing& drawing, const Box* part,
                             std::span<const std::uint32_t> others) {
  FEEDLINE_CHECK(image.width > 0 && image.height > 0);
  StepBuilder builder(image, drawing);
  Drawer drawer(first_stream, key, drawing.steps->decisions, builder, drawing.iou_crops);
  for (std::size_t i = 0; i < operations.size(); ++i) {
    drawer.count_from(i < others.size() ? others[i] : first_stream);
    FEEDLINE_CHECK_OK(drawer.draw(static_cast<int>(i), operations[i]));
  }
  if (part != nullptr) builder.crop(*part);
  builder.finish();
  return builder.size();
}

CompiledChain::CompiledChain(std::vector<Operation> operations, Input input, Emitter emitter, OutputEraser eraser,
                             std::shared_ptr<const DeviceElements> device_elements)
    : operations_(std::move(operations)),
      input_(std::move(input)),
      emitter_(std::move(emitter)),
      eraser_(std::move(eraser)),
      device_elements_(std::move(device_elements)) {}

// Returns the elements of the rectangles, as they would be written to a row of one pixel.
std::vector<DeviceRectangle> CompiledChain::list_rectangles(const Drawing& drawing, Workspace& workspace) const {
  std::vector<DeviceRectangle> rectangles;
  FEEDLINE_CHECK(device_elements_ != nullptr);
  const std::size_t bytes = size_of(device_elements_->spec.dtype);
  for (const Erasure& erasure : drawing.steps->erasures) {
    FEEDLINE_CHECK(!erasure.noise);
    Erasure pixel = erasure;
    pixel.box = {0, 0, 1, 1};
    alignas(std::uint32_t) std::array<std::byte, 3 * sizeof(std::uint32_t)> elements{};
    eraser_.erase(pixel, active_kernels(), workspace.impl->noise,
                  {elements.data(), {device_elements_->spec.dtype, Shape{1, 1, device_elements_->channels}}});
    DeviceRectangle made{.box = erasure.box};
    for (std::size_t c = 0; c < static_cast<std::size_t>(device_elements_->channels); ++c)
      std::memcpy(&made.value[c], elements.data() + c * bytes, bytes);
    rectangles.push_back(made);
  }
  return rectangles;
}

Result<void> CompiledChain::draw(Size image, const base::SampleKey& key, Drawing& drawing) const {
  FEEDLINE_TRY(drawing.size,
               draw_operations(operations_, input_.first_stream, image, key, drawing, nullptr, input_.others));
  drawing.planes = input_.fidelity == Fidelity::kFast ? useful_planes(*drawing.steps) : std::nullopt;
  return {};
}

Result<void> CompiledChain::apply(const Drawing& drawing, memory::PixelView decoded, Workspace& workspace,
                                  ArrayView out) const {
  FEEDLINE_CHECK(decoded.width == drawing.region.width && decoded.height == drawing.region.height);
  FEEDLINE_CHECK(decoded.channels == (input_.mode == ColorMode::kRgb ? 3 : 1));
  return emit(drawing, decoded, workspace, out);
}

Result<void> CompiledChain::apply(const Drawing& drawing, const memory::Planes& decoded, Workspace& workspace,
                                  ArrayView out) const {
  FEEDLINE_CHECK(drawing.planes.has_value());
  FEEDLINE_CHECK(decoded.count == 1 || (decoded.count == 3 && input_.mode == ColorMode::kRgb));
  const PlanarImage image{decoded, drawing.region, input_.mode == ColorMode::kRgb ? 3 : 1};
  return emit(drawing, image, workspace, out);
}

template <typename Decoded>
Result<void> CompiledChain::emit(const Drawing& drawing, const Decoded& decoded, Workspace& workspace,
                                 const ArrayView& out) const {
  const Kernels& kernels = active_kernels();
  if (out.spec == output()) {
    FEEDLINE_CHECK_OK(run_steps(*drawing.steps, decoded, emitter_, kernels, *workspace.impl, out.data));
  } else {
    FEEDLINE_CHECK(!has_fixed_size());
    const Emitter emitter = emitter_.of_size(drawing.size);
    FEEDLINE_CHECK(out.spec == emitter.spec());
    FEEDLINE_CHECK_OK(run_steps(*drawing.steps, decoded, emitter, kernels, *workspace.impl, out.data));
  }
  if (device_elements_ != nullptr && device_elements_->most_rectangles > 0)
    return {};  // in the order of list_rectangles()
  for (const Erasure& erasure : drawing.steps->erasures) eraser_.erase(erasure, kernels, workspace.impl->noise, out);
  return {};
}

std::vector<DrawnValue> CompiledChain::values(const Drawing& drawing) const { return values_of(drawing); }

std::vector<DrawnValue> values_of(const Drawing& drawing) {
  std::vector<DrawnValue> values;
  for (const Decision& d : drawing.steps->decisions) {
    const std::string operation(d.name);
    const auto add = [&](const char* name, std::initializer_list<int> numbers) {
      values.push_back({operation, name, std::vector<double>(numbers.begin(), numbers.end())});
    };
    switch (d.kind) {
      case Decision::Kind::kCrop:
        add("crop", {d.box.left, d.box.top, d.box.width, d.box.height});
        break;
      case Decision::Kind::kFlip:
        add("flip", {d.flip ? 1 : 0});
        break;
      case Decision::Kind::kSize:
        add("size", {d.size.height, d.size.width});
        break;
      case Decision::Kind::kPadding:
        add("padding", {d.padding.left, d.padding.top, d.padding.right, d.padding.bottom});
        break;
      case Decision::Kind::kJitter:
        append_jitter(operation, d.jitter, values);
        break;
      case Decision::Kind::kPermutation:
        add("permutation", {d.channels[0], d.channels[1], d.channels[2]});
        break;
      case Decision::Kind::kAugmentation:
        values.push_back({operation, std::string(name_of(d.augmentation.augmentation)), {d.augmentation.amount}});
        break;
      case Decision::Kind::kBox:
        values.push_back({operation, std::string(d.label), {}});
        for (const int number : {d.box.left, d.box.top, d.box.width, d.box.height})
          values.back().values.push_back(number);
        break;
      case Decision::Kind::kNumber:
        if (!d.continues) values.push_back({operation, std::string(d.label), {}});
        values.back().values.push_back(d.number);
        break;
      case Decision::Kind::kWarp:
        std::visit(WarpValues{operation, values}, d.warp.parameters);
        break;
      case Decision::Kind::kScale:
        values.push_back({operation, "scale", {d.scale}});
        break;
      case Decision::Kind::kInterpolation:
        values.push_back({operation, "interpolation", {number_of(d.interpolation)}});
        break;
    }
  }
  return values;
}

}  // namespace feedline::transform
