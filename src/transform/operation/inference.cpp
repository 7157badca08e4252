// SPDX-License-Identifier: Apache-2.0
#include "transform/operation/inference.h"

#include <algorithm>
#include <cmath>

#include "transform/augment/sampling.h"
#include "transform/operation/argument_checks.h"
#include "transform/operation/argument_words.h"
#include "transform/operation/image_operation.h"

namespace feedline::transform {
namespace {

constexpr int kMostLevels = 2;  // nested levels; each uses eight bits of a stream number

// Returns whether the operation only moves pixels, or converts values; nested operations are checked on their own.
bool supports_stored_values(const Operation& operation) {
  const Properties properties = operation->properties();
  if (properties.stage != Stage::kPixels || !operation->chains().empty()) return true;
  return properties.moves_pixels && !properties.is_automatic && !properties.draws_by_boxes && !properties.erases;
}

bool same_size(const Inferred& a, const Inferred& b) {
  return a.size.has_value() == b.size.has_value() &&
         (!a.size || (a.size->width == b.size->width && a.size->height == b.size->height));
}

}  // namespace

Result<void> Inference::apply(const Operation& operation, bool is_first) {
  is_first_ = is_first;
  holder_ = operation->name();
  if (state.values != PixelValues::kBytes && !supports_stored_values(operation)) return needs_bytes();
  return operation->infer(*this);
}

Result<void> Inference::needs_bytes() const {
  if (state.values == PixelValues::kBytes) return {};
  return config_error("works on 8-bit pixels only, but the image has the stored values of decode(dtype=\"" +
                      std::string(word_of(state.values)) +
                      "\"): use crops, resizes, flips, rotations, normalize and window, or omit dtype=");
}

Result<void> Inference::needs_pixels() const {
  if (state.dtype == DType::kUint8) return {};
  return config_error("works on uint8 pixels, but the image is " + std::string(name_of(state.dtype)) +
                      " at this point: place it before normalize and to_dtype");
}

Result<void> Inference::becomes(Size size) {
  FEEDLINE_CHECK_OK(check_size(size));
  state.size = size;
  state.open_by.clear();
  return {};
}

Result<void> Inference::becomes_any_size() {
  FEEDLINE_CHECK_OK(needs_pixels());
  state.size.reset();
  return {};
}

Result<void> Inference::check_interpolation(Interpolation interpolation) const {
  switch (interpolation) {
    case Interpolation::kNearest:
    case Interpolation::kBilinear:
      return needs_pixels();
    case Interpolation::kBicubic:
    case Interpolation::kRandom:
      if (state.values != PixelValues::kBytes)
        return config_error("interpolation of stored values (dtype=) must be nearest or bilinear, got " +
                            std::string(word_of(interpolation)));
      return needs_pixels();
    case Interpolation::kBox:
    case Interpolation::kLanczos:
      break;
    case Interpolation::kTorchBilinear:
    case Interpolation::kTorchBicubic:
      return config_error("interpolation must be nearest, bilinear, bicubic or random, got one of torch's resizes");
  }
  return config_error("interpolation must be nearest, bilinear, bicubic or random, got " +
                      std::string(word_of(interpolation)));
}

Result<void> Inference::check_per_channel(std::string_view name, const std::vector<float>& values) const {
  const bool is_known = state.channels != 0;
  if (is_known && values.size() != 1 && values.size() != static_cast<std::size_t>(state.channels)) {
    const std::string channels = std::to_string(state.channels) + (state.channels == 1 ? " channel" : " channels");
    return config_error(channels + " but " + std::to_string(values.size()) + " numbers in " + std::string(name) +
                        "; give one per channel, or one for all");
  }
  for (const float value : values)
    if (!std::isfinite(value)) return config_error(std::string(name) + " must be finite");
  return {};
}

Result<Inferred> Inference::nested(std::span<const Operation> operations, const Inferred& before) const {
  if (level_ == kMostLevels)
    return config_error("operations can be nested at most " + std::to_string(kMostLevels) + " levels deep");
  if (operations.size() > kMostNested)
    return config_error("at most " + std::to_string(kMostNested) + " operations are supported, got " +
                        std::to_string(operations.size()));
  Inference inner;
  inner.state = before;
  inner.level_ = level_ + 1;
  for (const Operation& operation : operations) {
    const std::string name(operation->name());
    if (operation->properties().stage == Stage::kValues)
      return config_error(name + ": the type of an image's values cannot be random; put it after the outer operation");
    if (!operation.fields.empty()) return config_error(name + ": give fields= to the outer operation instead");
    if (auto checked = inner.apply(operation, false); !checked) return config_error(name + ": " + checked.error().what);
  }
  return inner.state;
}

Result<void> Inference::becomes_either(const Inferred& one, const Inferred& other) {
  if (one.channels != other.channels)
    return config_error("the outcomes have " + std::to_string(std::min(one.channels, other.channels)) + " and " +
                        std::to_string(std::max(one.channels, other.channels)) + " channels");
  const bool same = same_size(one, other);
  state = one;
  if (!same) forget_size_by_chance();
  return {};
}

void Inference::forget_size_by_chance() {
  state.size.reset();
  state.open_by = holder_;
}

Result<Inferred> infer(std::span<const Operation> operations, std::optional<Size> size) {
  Inference inference;
  inference.state.size = size;
  bool is_first = true;
  for (const Operation& operation : operations) {
    if (auto checked = inference.apply(operation, is_first); !checked)
      return config_error(std::string(operation->name()) + ": " + checked.error().what);
    const Properties properties = operation->properties();
    is_first = is_first && (properties.stage == Stage::kNone || properties.stage == Stage::kAudio ||
                            properties.stage == Stage::kVolume || properties.boxes != nullptr);
  }
  return inference.state;
}

}  // namespace feedline::transform
