// SPDX-License-Identifier: Apache-2.0
#include "transform/chain.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "transform/compiled_chain.h"
#include "transform/kernels/variants.h"
#include "transform/noise.h"
#include "transform/operation/field_operations.h"
#include "transform/operation/image_operation.h"
#include "transform/operation/inference.h"
#include "transform/runner.h"
#include "transform/steps.h"

namespace feedline::transform {

Drawing::Drawing() : steps(std::make_unique<Steps>()) {}
Drawing::~Drawing() = default;
Drawing::Drawing(Drawing&&) noexcept = default;
Drawing& Drawing::operator=(Drawing&&) noexcept = default;

Workspace::Workspace() : impl(std::make_unique<Impl>()) {}
Workspace::~Workspace() = default;
Workspace::Workspace(Workspace&&) noexcept = default;
Workspace& Workspace::operator=(Workspace&&) noexcept = default;

Result<void> Chain::check(std::span<const Operation> operations) {
  FEEDLINE_CHECK_OK(infer(operations));
  return {};
}

namespace {

constexpr Size kAnySize{kAnyLength, kAnyLength};

// Rectangles that are drawn after operations on values use the units of these values instead of bytes.
bool writes_values(std::span<const Operation> operations) {
  return std::any_of(std::ranges::find_if(operations, &makes_values), operations.end(), &erases);
}

// Returns the maximum number of rectangles that have one value per channel; nullopt if there may be other rectangles.
std::optional<int> most_rectangles(std::span<const Operation> operations) {
  int most = 0;
  for (auto operation = std::ranges::find_if(operations, &makes_values); operation != operations.end(); ++operation) {
    if (!erases(*operation)) continue;
    const Properties properties = (*operation)->properties();
    if (!properties.erases || properties.erases_with_noise) return std::nullopt;
    most += properties.most_rectangles;
  }
  return most;
}

std::shared_ptr<const DeviceElements> make_device_elements(const Pointwise& pointwise, int channels, Size size,
                                                           Layout layout, int rectangles) {
  const bool halves = pointwise.dtype() == DType::kFloat16 || pointwise.dtype() == DType::kBfloat16;
  const void* const tables = halves ? static_cast<const void*>(pointwise.float16_tables())
                                    : static_cast<const void*>(pointwise.float32_tables());
  const auto* const bytes = static_cast<const std::byte*>(tables);
  const std::size_t length = static_cast<std::size_t>(channels) * 256 * size_of(pointwise.dtype());
  return std::make_shared<const DeviceElements>(DeviceElements{
      Emitter(pointwise, channels, size, layout).spec(), layout, size, channels, {bytes, bytes + length}, rectangles});
}

// Compiles the operations from `first` on. Requires: the operations before `first` change only pixels.
Result<std::shared_ptr<const Chain>> compile_from(std::span<const Operation> operations, std::size_t first,
                                                  CompiledChain::Input input, std::optional<DType> dtype, Layout layout,
                                                  Chain::OutputSize size, Chain::Elements elements,
                                                  std::optional<Size> image = {}) {
  FEEDLINE_TRY(const Inferred inferred, infer(operations, image));
  if (inferred.values != PixelValues::kBytes)
    return config_error("decode: dtype= supports neither views nor videos; omit dtype=");
  if (!inferred.size && size == Chain::OutputSize::kFixed)
    return config_error("the chain has no fixed output size" +
                        (inferred.open_by.empty() ? "" : " (it varies after " + inferred.open_by + ")") +
                        ": add resize((height, width)), center_crop or a random crop");
  if (dtype && !is_pixel_dtype(*dtype) && dtype != DType::kBfloat16)
    return config_error("dtype: " + std::string(name_of(*dtype)) +
                        " is not an element type of images; use uint8, float16, bfloat16 or float32");
  if (dtype == DType::kUint8 && inferred.dtype != DType::kUint8)
    return config_error("dtype: the output of the operations is " + std::string(name_of(inferred.dtype)) +
                        ", which cannot be converted to uint8");
  if (dtype == DType::kBfloat16 && writes_values(operations))
    return config_error(
        "dtype: bfloat16 does not support random_erasing after normalize or to_dtype; "
        "place random_erasing before these, or use float16 or float32");
  Pointwise pointwise(inferred.channels);
  for (const Operation& operation : operations) operation->convert(pointwise);
  if (dtype) pointwise.convert(*dtype, true);
  pointwise.finish();
  const auto rest = operations.subspan(first);
  std::shared_ptr<const DeviceElements> device_elements;
  const std::optional<int> rectangles = elements == Chain::Elements::kOnDeviceUnderRectangles
                                            ? most_rectangles(operations)
                                        : writes_values(operations) ? std::nullopt
                                                                    : std::optional(0);
  if (elements != Chain::Elements::kMade && inferred.size && pointwise.dtype() != DType::kUint8 && rectangles) {
    device_elements = make_device_elements(pointwise, inferred.channels, *inferred.size, layout, *rectangles);
    pointwise = Pointwise(inferred.channels);
    pointwise.finish();
    layout = Layout::kNhwc;
  }
  return std::make_shared<const CompiledChain>(
      std::vector<Operation>(rest.begin(), rest.end()), std::move(input),
      Emitter(std::move(pointwise), inferred.channels, inferred.size.value_or(kAnySize), layout),
      OutputEraser(operations, first, layout), std::move(device_elements));
}

}  // namespace

Result<std::shared_ptr<const Chain>> Chain::compile(std::span<const Operation> operations, std::optional<DType> dtype,
                                                    Layout layout, OutputSize size, Elements elements,
                                                    std::optional<Size> image) {
  FEEDLINE_TRY(const Inferred inferred, infer(operations, image));
  return compile_from(operations, 0,
                      {.mode = inferred.mode, .fidelity = inferred.fidelity, .applies_exif = inferred.applies_exif},
                      dtype, layout, size, elements, image);
}

Result<std::shared_ptr<const Chain>> Chain::compile_rest(std::span<const Operation> operations, std::size_t first,
                                                         std::optional<DType> dtype, Layout layout, OutputSize size,
                                                         Elements elements) {
  FEEDLINE_CHECK(first <= operations.size());
  FEEDLINE_TRY(const Inferred given, infer(operations.first(first)));
  const ColorMode mode = given.channels == 3 ? ColorMode::kRgb : ColorMode::kL;
  return compile_from(operations, first,
                      {.mode = mode, .prepared = true, .first_stream = static_cast<std::uint32_t>(first)}, dtype,
                      layout, size, elements);
}

Result<std::shared_ptr<const Chain>> Chain::compile_view(std::span<const Operation> operations, std::size_t first,
                                                         std::uint32_t view, std::optional<DType> dtype, Layout layout,
                                                         OutputSize size, std::span<const std::uint32_t> drawn_as,
                                                         Elements elements) {
  constexpr unsigned kViewBits = 24;  // operations and their nested operations use lower stream numbers
  FEEDLINE_CHECK(first <= operations.size() && view < kMostViews);
  FEEDLINE_TRY(const Inferred given, infer(operations.first(first)));
  const ColorMode mode = given.channels == 3 ? ColorMode::kRgb : ColorMode::kL;
  const auto streams_of = [first](std::uint32_t number) {
    FEEDLINE_CHECK(number < kMostViews);
    return static_cast<std::uint32_t>(first) + ((number + 1) << kViewBits);
  };
  CompiledChain::Input input{
      .mode = mode, .fidelity = given.fidelity, .prepared = true, .first_stream = streams_of(view)};
  for (const std::uint32_t other : drawn_as) input.others.push_back(streams_of(other));
  return compile_from(operations, first, std::move(input), dtype, layout, size, elements);
}

Result<void> resize(memory::PixelView in, Size out_size, Interpolation interpolation, Workspace& workspace,
                    memory::PixelBuffer& out) {
  FEEDLINE_CHECK(in.channels == 1 || in.channels == 3);
  if (in.width < 1 || in.height < 1 || out_size.width < 1 || out_size.height < 1)
    return config_error("resize: every side must be at least 1, got " + std::to_string(in.height) + " x " +
                        std::to_string(in.width) + " to " + std::to_string(out_size.height) + " x " +
                        std::to_string(out_size.width));
  if (interpolation == Interpolation::kRandom)
    return config_error("resize: interpolation must not be \"random\" for a single image");
  const ResizeStep step{{in.height, in.width}, out_size, {0, 0, out_size.width, out_size.height}, interpolation};
  return resize_into(step, in, active_kernels(), workspace.impl->resizer, out);
}

}  // namespace feedline::transform
