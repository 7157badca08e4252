// SPDX-License-Identifier: Apache-2.0
#include "transform/inference.h"

#include <charconv>
#include <cmath>
#include <string_view>

#include "memory/pixels.h"
#include "transform/augmentation_level.h"
#include "transform/pointwise.h"
#include "transform/sampling.h"

namespace feedline::transform {
namespace {

// Sides and borders above this are mistakes, and stay far from overflow.
constexpr int kMostPixelsPerSide = 1 << 20;

std::string number(double value) {
  char digits[40];
  const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  return std::string(digits, end);
}

std::string pair(const Range& range) { return "(" + number(range.low) + ", " + number(range.high) + ")"; }
std::string text(Size size) { return std::to_string(size.height) + " x " + std::to_string(size.width); }

using Check = Result<void>;

Check check_size(Size size) {
  const auto sound = [](int side) { return side >= 1 && side <= kMostPixelsPerSide; };
  if (sound(size.height) && sound(size.width) &&
      std::int64_t{size.height} * size.width <= memory::PixelBuffer::kMaxPixels)
    return {};
  return config_error("size (height, width) must be from 1 pixel to " + std::to_string(kMostPixelsPerSide) +
                      " each and at most " + std::to_string(memory::PixelBuffer::kMaxPixels) + " together, got (" +
                      std::to_string(size.height) + ", " + std::to_string(size.width) + ")");
}

Check check_positive(std::string_view name, const Range& range) {
  if (range.low > 0 && range.low <= range.high && std::isfinite(range.high)) return {};
  return config_error(std::string(name) + " must be two numbers 0 < low <= high, got " + pair(range));
}

Check check_between(std::string_view name, const Range& range, double low, double high) {
  if (range.low >= low && range.low <= range.high && range.high <= high && std::isfinite(range.high)) return {};
  const std::string limit = std::isfinite(high) ? " <= " + number(high) : "";
  return config_error(std::string(name) + " must be two numbers " + number(low) + " <= low <= high" + limit + ", got " +
                      pair(range));
}

Check check_padding(const Padding& padding) {
  for (const int side : {padding.left, padding.top, padding.right, padding.bottom})
    if (side < 0 || side > kMostPixelsPerSide)
      return config_error("padding must be from 0 to " + std::to_string(kMostPixelsPerSide) + ", got " +
                          std::to_string(side));
  return {};
}

Check check_probability(double p) {
  if (p >= 0 && p <= 1) return {};
  return config_error("p must be between 0 and 1, got " + number(p));
}

// One operation after the other; each overload checks its arguments, then what it takes, then says what it gives.
class Inference {
 public:
  explicit Inference(Inferred& state) : state_(state) {}

  Check apply(const Operation& operation, bool first) {
    first_ = first;
    return std::visit(*this, operation);
  }

  Check operator()(const op::Skipped&) { return {}; }
  Check operator()(const op::Decode& o) {
    if (!first_) return config_error("must be the first operation");
    state_.mode = o.mode;
    state_.fidelity = o.fidelity;
    state_.channels = o.mode == ColorMode::kRgb ? 3 : 1;
    return {};
  }
  Check operator()(const op::Resize& o) {
    const bool edge = o.size.width == 0;
    FEEDLINE_CHECK_OK(check_size(edge ? Size{o.size.height, o.size.height} : o.size));
    if (o.max_size && !edge)
      return config_error("max_size needs an int size (of the smaller edge), got (" + std::to_string(o.size.height) +
                          ", " + std::to_string(o.size.width) + ")");
    if (o.max_size && *o.max_size <= o.size.height)
      return config_error("max_size must be greater than size " + std::to_string(o.size.height) + ", got " +
                          std::to_string(*o.max_size));
    FEEDLINE_CHECK_OK(needs_pixels());
    if (!edge) return gives(o.size);
    return state_.size ? gives(resized_size(*state_.size, o)) : Check{};
  }
  Check operator()(const op::CenterCrop& o) {
    FEEDLINE_CHECK_OK(check_size(o.size));
    FEEDLINE_CHECK_OK(needs_pixels());
    return gives(o.size);
  }
  Check operator()(const op::RandomCrop& o) {
    FEEDLINE_CHECK_OK(check_size(o.size));
    FEEDLINE_CHECK_OK(check_padding(o.padding));
    FEEDLINE_CHECK_OK(needs_pixels());
    if (state_.size && !o.pad_if_needed) {
      const Size whole = padded(*state_.size, o.padding);
      if (whole.height < o.size.height || whole.width < o.size.width)
        return config_error("the crop of " + text(o.size) + " is larger than the image, which is " + text(whole) +
                            " there; pad_if_needed would help");
    }
    return gives(o.size);
  }
  Check operator()(const op::RandomResizedCrop& o) {
    FEEDLINE_CHECK_OK(check_size(o.size));
    FEEDLINE_CHECK_OK(check_positive("scale", o.scale));
    FEEDLINE_CHECK_OK(check_positive("ratio", o.ratio));
    FEEDLINE_CHECK_OK(needs_pixels());
    return gives(o.size);
  }
  Check operator()(const op::RandomHorizontalFlip& o) { return check_probability(o.p); }
  Check operator()(const op::RandomVerticalFlip& o) { return check_probability(o.p); }
  Check operator()(const op::Pad& o) {
    FEEDLINE_CHECK_OK(check_padding(o.padding));
    FEEDLINE_CHECK_OK(needs_pixels());
    return state_.size ? gives(padded(*state_.size, o.padding)) : Check{};
  }
  Check operator()(const op::Grayscale& o) {
    if (o.num_output_channels != 1 && o.num_output_channels != 3)
      return config_error("num_output_channels must be 1 or 3, got " + std::to_string(o.num_output_channels));
    FEEDLINE_CHECK_OK(needs_pixels());
    state_.channels = o.num_output_channels;
    return {};
  }
  Check operator()(const op::ColorJitter& o) {
    FEEDLINE_CHECK_OK(check_between("brightness", o.brightness, 0, INFINITY));
    FEEDLINE_CHECK_OK(check_between("contrast", o.contrast, 0, INFINITY));
    FEEDLINE_CHECK_OK(check_between("saturation", o.saturation, 0, INFINITY));
    FEEDLINE_CHECK_OK(check_between("hue", o.hue, -0.5, 0.5));
    return needs_pixels();
  }
  Check operator()(const op::RandomChange& o) {
    FEEDLINE_CHECK_OK(check_probability(o.p));
    if (o.augmentation == Augmentation::kPosterize &&
        !(o.amount >= 0 && o.amount <= 8 && o.amount == std::floor(o.amount)))
      return config_error("bits must be an integer from 0 to 8, got " + number(o.amount));
    if (o.augmentation == Augmentation::kSolarize && !(o.amount >= 0 && o.amount <= 256))
      return config_error("threshold must be from 0 to 256, got " + number(o.amount));
    if (o.augmentation == Augmentation::kSharpness && !(o.amount >= 0 && std::isfinite(o.amount)))
      return config_error("sharpness_factor must not be negative, got " + number(o.amount));
    return needs_pixels();
  }
  Check operator()(const op::AutoAugment& o) { return check_augmented(o.interpolation); }
  Check operator()(const op::RandAugment& o) {
    FEEDLINE_CHECK_OK(check_bins(o.num_magnitude_bins));
    if (o.num_ops < 0 || o.num_ops > static_cast<int>(Augmentations::kMost))
      return config_error("num_ops must be from 0 to " + std::to_string(Augmentations::kMost) + ", got " +
                          std::to_string(o.num_ops));
    if (o.magnitude < 0 || o.magnitude >= o.num_magnitude_bins)
      return config_error("magnitude must be from 0 to num_magnitude_bins - 1, " +
                          std::to_string(o.num_magnitude_bins - 1) + ", got " + std::to_string(o.magnitude));
    return check_augmented(o.interpolation);
  }
  Check operator()(const op::TrivialAugmentWide& o) {
    FEEDLINE_CHECK_OK(check_bins(o.num_magnitude_bins));
    return check_augmented(o.interpolation);
  }
  Check operator()(const op::Normalize& o) {
    FEEDLINE_CHECK_OK(check_statistics("mean", o.mean));
    FEEDLINE_CHECK_OK(check_statistics("std", o.std));
    for (const float std : o.std)
      if (std == 0 || (state_.dtype == DType::kFloat16 && from_half(to_half(std)) == 0))
        return config_error("std must not be 0, got " + number(std) + " on " + std::string(name_of(state_.dtype)));
    if (state_.dtype == DType::kUint8) state_.dtype = DType::kFloat32;
    return {};
  }
  Check operator()(const op::ToDtype& o) {
    if (!is_pixel_dtype(o.dtype))
      return config_error(std::string(name_of(o.dtype)) +
                          " is no element type of images; use uint8, float16 or float32");
    if (o.dtype == DType::kUint8 && state_.dtype != DType::kUint8)
      return config_error("the image is " + std::string(name_of(state_.dtype)) + " there and cannot become uint8");
    state_.dtype = o.dtype;
    return {};
  }

 private:
  Check gives(Size size) {
    FEEDLINE_CHECK_OK(check_size(size));
    state_.size = size;
    return {};
  }
  static Check check_bins(int bins) {
    constexpr int kMostBins = 1 << 20;
    if (bins >= 2 && bins <= kMostBins) return {};
    return config_error("num_magnitude_bins must be from 2 to " + std::to_string(kMostBins) + ", got " +
                        std::to_string(bins));
  }
  Check check_augmented(Interpolation interpolation) const {
    if (interpolation == Interpolation::kBox)
      return config_error("interpolation must be nearest, bilinear or bicubic, got box");
    return needs_pixels();
  }
  Check needs_pixels() const {
    if (state_.dtype == DType::kUint8) return {};
    return config_error("works on uint8 pixels, but the image is " + std::string(name_of(state_.dtype)) +
                        " there: put it before normalize and to_dtype");
  }
  Check check_statistics(std::string_view name, const std::vector<float>& values) const {
    if (values.size() != 1 && values.size() != static_cast<std::size_t>(state_.channels)) {
      const std::string channels = std::to_string(state_.channels) + (state_.channels == 1 ? " channel" : " channels");
      return config_error(channels + " but " + std::to_string(values.size()) + " numbers in " + std::string(name) +
                          "; give one per channel, or one for all");
    }
    for (const float value : values)
      if (!std::isfinite(value)) return config_error(std::string(name) + " must be finite");
    return {};
  }

  Inferred& state_;
  bool first_ = true;
};

}  // namespace

Result<Inferred> infer(std::span<const Operation> operations) {
  Inferred state;
  Inference inference(state);
  bool first = true;
  for (const Operation& operation : operations) {
    if (auto checked = inference.apply(operation, first); !checked)
      return config_error(std::string(name_of(operation)) + ": " + checked.error().what);
    first = first && std::holds_alternative<op::Skipped>(operation);
  }
  return state;
}

}  // namespace feedline::transform
