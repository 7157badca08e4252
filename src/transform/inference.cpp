// SPDX-License-Identifier: Apache-2.0
#include "transform/inference.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "transform/argument_checks.h"
#include "transform/augmentation_level.h"
#include "transform/field_operations.h"
#include "transform/pointwise.h"
#include "transform/sampling.h"

namespace feedline::transform {
namespace {

using Check = Result<void>;

constexpr int kMostTrials = 10'000;
constexpr double kMostZoom = 100;
constexpr int kMostErased = 100;    // rectangles, each with a part of the stream
constexpr int kMostBlurred = 1023;  // pixels
constexpr int kMostLevels = 2;      // of operations in operations

// One operation after the other; each overload checks its arguments, then what it takes, then says what it gives.
class Inference {
 public:
  explicit Inference(Inferred& state, int level = 0) : state_(state), level_(level) {}

  Check apply(const Operation& operation, bool first) {
    first_ = first;
    holder_ = name_of(operation);
    return std::visit(*this, operation);
  }

  Check operator()(const op::Skipped&) { return {}; }
  Check operator()(const op::Boxes&) { return {}; }
  Check operator()(const op::SanitizeBoundingBoxes& o) {
    FEEDLINE_CHECK_OK(check_at_least_one("min_size", o.min_size));
    return check_at_least_one("min_area", o.min_area);
  }
  Check operator()(const op::Decode& o) {
    if (!first_) return config_error("must be the first operation");
    state_.mode = o.mode;
    state_.fidelity = o.fidelity;
    state_.applies_exif = o.applies_exif;
    state_.channels = o.mode == ColorMode::kRgb ? 3 : 1;
    return {};
  }
  Check operator()(const op::Resize& o) {
    if (o.size.height == 0 && o.size.width == 0) return check_longest(o);
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
  Check operator()(const op::RandomCropOrPad& o) {
    FEEDLINE_CHECK_OK(check_size(o.size));
    FEEDLINE_CHECK_OK(needs_pixels());
    return gives(o.size);
  }
  Check operator()(const op::CornerCrop& o) {
    FEEDLINE_CHECK_OK(check_size(o.size));
    FEEDLINE_CHECK_OK(needs_pixels());
    if (state_.size && (state_.size->height < o.size.height || state_.size->width < o.size.width))
      return config_error("the crop of " + shown(o.size) + " is larger than the image, which is " +
                          shown(*state_.size) + " there");
    return gives(o.size);
  }
  Check operator()(const op::TrimBorder& o) {
    if (o.border < 0) return config_error("border_size must not be negative, got " + std::to_string(o.border));
    FEEDLINE_CHECK_OK(needs_pixels());
    if (!state_.size) return {};
    const auto left = trimmed_box(*state_.size, o);
    if (left) return gives({left->height, left->width});
    return config_error("a border of " + std::to_string(o.border) + " leaves nothing of the image, which is " +
                        shown(*state_.size) + " there");
  }
  Check operator()(const op::RandomCrop& o) {
    FEEDLINE_CHECK_OK(check_size(o.size));
    FEEDLINE_CHECK_OK(check_padding(o.padding));
    FEEDLINE_CHECK_OK(needs_pixels());
    if (state_.size && !o.pad_if_needed) {
      const Size whole = padded(*state_.size, o.padding);
      if (whole.height < o.size.height || whole.width < o.size.width)
        return config_error("the crop of " + shown(o.size) + " is larger than the image, which is " + shown(whole) +
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
  Check operator()(const op::RandomIouCrop& o) {
    const Range scale{o.min_scale, o.max_scale};
    if (!(scale.low > 0 && scale.low <= scale.high && scale.high <= 1))
      return config_error("min_scale and max_scale must be two numbers 0 < low <= high <= 1, got " + shown(scale));
    FEEDLINE_CHECK_OK(
        check_positive("min_aspect_ratio and max_aspect_ratio", {o.min_aspect_ratio, o.max_aspect_ratio}));
    if (o.trials < 1 || o.trials > kMostTrials)
      return config_error("trials must be from 1 to " + std::to_string(kMostTrials) + ", got " +
                          std::to_string(o.trials));
    if (o.sampler_options.empty()) return config_error("sampler_options must not be empty");
    for (const double option : o.sampler_options)
      if (!(option >= 0)) return config_error("sampler_options must not be negative, got " + shown(option));
    return gives_any();
  }
  Check operator()(const op::RandomZoomOut& o) {
    FEEDLINE_CHECK_OK(check_probability(o.p));
    FEEDLINE_CHECK_OK(check_between("side_range", o.side_range, 1, kMostZoom));
    return gives_any();
  }
  Check operator()(const op::RandomPhotometricDistort& o) {
    FEEDLINE_CHECK_OK(check_probability(o.p));
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
      return config_error("bits must be an integer from 0 to 8, got " + shown(o.amount));
    if (o.augmentation == Augmentation::kSolarize && !(o.amount >= 0 && o.amount <= 256))
      return config_error("threshold must be from 0 to 256, got " + shown(o.amount));
    if (o.augmentation == Augmentation::kSharpness && !(o.amount >= 0 && std::isfinite(o.amount)))
      return config_error("sharpness_factor must not be negative, got " + shown(o.amount));
    return needs_pixels();
  }
  Check operator()(const op::AutoAugment& o) { return check_moved(o.interpolation); }
  Check operator()(const op::RandAugment& o) {
    FEEDLINE_CHECK_OK(check_bins(o.num_magnitude_bins));
    if (o.num_ops < 0 || o.num_ops > static_cast<int>(Augmentations::kMost))
      return config_error("num_ops must be from 0 to " + std::to_string(Augmentations::kMost) + ", got " +
                          std::to_string(o.num_ops));
    if (o.magnitude < 0 || o.magnitude >= o.num_magnitude_bins)
      return config_error("magnitude must be from 0 to num_magnitude_bins - 1, " +
                          std::to_string(o.num_magnitude_bins - 1) + ", got " + std::to_string(o.magnitude));
    return check_moved(o.interpolation);
  }
  Check operator()(const op::TrivialAugmentWide& o) {
    FEEDLINE_CHECK_OK(check_bins(o.num_magnitude_bins));
    return check_moved(o.interpolation);
  }
  Check operator()(const op::RandomRotation& o) {
    FEEDLINE_CHECK_OK(check_degrees("degrees", o.degrees));
    FEEDLINE_CHECK_OK(check_moved(o.interpolation));
    if (o.expand) state_.size.reset();
    return {};
  }
  Check operator()(const op::RandomAffine& o) {
    FEEDLINE_CHECK_OK(check_degrees("degrees", o.degrees));
    if (o.translate)
      for (const double share : *o.translate)
        if (!(share >= 0 && share <= 1)) return config_error("translate must be from 0 to 1, got " + shown(share));
    if (o.scale) FEEDLINE_CHECK_OK(check_positive("scale", *o.scale));
    for (const auto& shear : {o.shear_x, o.shear_y})
      if (shear) FEEDLINE_CHECK_OK(check_degrees("shear", *shear));
    return check_moved(o.interpolation);
  }
  Check operator()(const op::RandomPerspective& o) {
    FEEDLINE_CHECK_OK(check_probability(o.p));
    if (!(o.distortion_scale >= 0 && o.distortion_scale <= 1))
      return config_error("distortion_scale must be from 0 to 1, got " + shown(o.distortion_scale));
    return check_moved(o.interpolation);
  }
  Check operator()(const op::ElasticTransform& o) {
    constexpr double kMostSigma = 1000;
    for (const double sigma : o.sigma)
      if (!(sigma >= 0 && sigma <= kMostSigma))
        return config_error("sigma must be from 0 to " + shown(kMostSigma) + ", got " + shown(sigma));
    if ((o.sigma[0] == 0) != (o.sigma[1] == 0))
      return config_error("sigma must be above 0 in both directions, or 0 in both, got " +
                          shown(Range{o.sigma[0], o.sigma[1]}));
    for (const double alpha : o.alpha)
      if (!std::isfinite(alpha)) return config_error("alpha must be finite, got " + shown(alpha));
    return check_moved(o.interpolation);
  }
  Check operator()(const op::RandomResize& o) {
    FEEDLINE_CHECK_OK(check_size({o.min_size, o.min_size}));
    if (o.max_size <= o.min_size || o.max_size > kMostPixelsPerSide)
      return config_error("max_size must be greater than min_size " + std::to_string(o.min_size) + " and at most " +
                          std::to_string(kMostPixelsPerSide) + ", got " + std::to_string(o.max_size));
    return gives_any();
  }
  Check operator()(const op::RandomShortSide& o) {
    if (o.min_sizes.empty()) return config_error("min_size must hold a number of pixels, got none");
    for (const int side : o.min_sizes) FEEDLINE_CHECK_OK(check_size({side, side}));
    if (o.max_size) FEEDLINE_CHECK_OK(check_side("max_size", *o.max_size));
    return gives_any();
  }
  Check operator()(const op::ScaleJitter& o) {
    FEEDLINE_CHECK_OK(check_size({o.target_size[0], o.target_size[1]}));
    FEEDLINE_CHECK_OK(check_positive("scale_range", o.scale_range));
    return gives_any();
  }
  Check operator()(const op::ResizeKeepRatio& o) {
    FEEDLINE_CHECK_OK(check_size(o.size));
    if (!(o.longest >= 0 && o.longest <= 1))
      return config_error("longest must be from 0 to 1, got " + shown(o.longest));
    FEEDLINE_CHECK_OK(check_probability("random_scale_prob", o.scale_p));
    FEEDLINE_CHECK_OK(check_positive("random_scale_range", o.scale_range));
    FEEDLINE_CHECK_OK(check_probability("random_aspect_prob", o.aspect_p));
    FEEDLINE_CHECK_OK(check_positive("random_aspect_range", o.aspect_range));
    if (o.scale_p > 0 || o.aspect_p > 0 || !state_.size) return gives_any();
    FEEDLINE_CHECK_OK(needs_pixels());
    return gives(kept_ratio_size(o, *state_.size, {}));
  }
  Check operator()(const op::PadTo& o) {
    FEEDLINE_CHECK_OK(check_size(o.size));
    FEEDLINE_CHECK_OK(needs_pixels());
    if (state_.size && (state_.size->height > o.size.height || state_.size->width > o.size.width))
      return config_error("the image, which is " + shown(*state_.size) + " there, is larger than " + shown(o.size));
    return gives(o.size);
  }
  Check operator()(const op::Letterbox& o) {
    FEEDLINE_CHECK_OK(check_size(o.size));
    FEEDLINE_CHECK_OK(needs_pixels());
    return gives(o.size);
  }
  Check operator()(const op::AugMix& o) {
    constexpr int kMostSeverity = 10;
    if (o.severity < 1 || o.severity > kMostSeverity)
      return config_error("severity must be from 1 to 10, got " + std::to_string(o.severity));
    if (o.mixture_width < 1 || o.mixture_width > MixDrawing::kMost)
      return config_error("mixture_width must be from 1 to " + std::to_string(MixDrawing::kMost) + ", got " +
                          std::to_string(o.mixture_width));
    if (o.chain_depth > static_cast<int>(Augmentations::kMost))
      return config_error("chain_depth must be at most " + std::to_string(Augmentations::kMost) + ", got " +
                          std::to_string(o.chain_depth));
    if (!(o.alpha > 0) || !std::isfinite(o.alpha)) return config_error("alpha must be above 0, got " + shown(o.alpha));
    return check_moved(o.interpolation);
  }
  Check operator()(const op::TimmAugment& o) {
    if (o.policy == nullptr) return config_error("its policy is not read: timm_augment() does that");
    if (!(o.translate >= 0 && o.translate <= 1))
      return config_error("translate_pct must be from 0 to 1, got " + shown(o.translate));
    return check_moved(o.interpolation);
  }
  Check operator()(const op::GaussianBlur& o) {
    for (const int size : o.kernel_size)
      if (size < 1 || size % 2 == 0 || size > kMostBlurred)
        return config_error("kernel_size must be odd, from 1 to " + std::to_string(kMostBlurred) + ", got " +
                            std::to_string(size));
    FEEDLINE_CHECK_OK(check_positive("sigma", o.sigma));
    return needs_pixels();
  }
  Check operator()(const op::RandomErasing& o) {
    FEEDLINE_CHECK_OK(check_probability(o.p));
    FEEDLINE_CHECK_OK(check_between(o.is_timms ? "min_area, max_area" : "scale", o.scale, 0, 1));
    FEEDLINE_CHECK_OK(check_positive(o.is_timms ? "min_aspect, max_aspect" : "ratio", o.ratio));
    if (o.count[0] < 1 || o.count[0] > o.count[1] || o.count[1] > kMostErased)
      return config_error("min_count, max_count must be 1 <= min_count <= max_count <= " + std::to_string(kMostErased) +
                          ", got " + std::to_string(o.count[0]) + " and " + std::to_string(o.count[1]));
    const bool is_value = o.noise == op::RandomErasing::Noise::kNone;
    if (is_value) FEEDLINE_CHECK_OK(check_statistics("value", o.value));
    if (state_.dtype != DType::kUint8) return {};
    if (!is_value && o.is_timms)
      return config_error("normal numbers are no pixels: put it behind normalize or to_dtype, or use mode=\"const\"");
    for (const float value : o.value)
      if (is_value && !(value >= 0 && value <= 255 && value == std::floor(value)))
        return config_error("value must be a whole number from 0 to 255 on uint8 pixels, got " + shown(value) +
                            "; behind normalize and to_dtype it is in their units");
    return {};
  }
  Check operator()(const op::RandomApply& o) {
    FEEDLINE_CHECK_OK(check_probability(o.p));
    FEEDLINE_TRY(const Inferred done, nested(o.operations, state_));
    if (o.p == 1) return take(done);
    if (o.p == 0) return {};
    return take_either(done, state_);
  }
  Check operator()(const op::RandomChoice& o) {
    if (o.chains.empty()) return config_error("there is nothing to choose from");
    if (!o.p.empty() && o.p.size() != o.chains.size())
      return config_error(std::to_string(o.chains.size()) + " chains but " + std::to_string(o.p.size()) +
                          " numbers in p; give one for each chain");
    double sum = 0;
    for (const double weight : o.p) {
      if (!(weight >= 0) || !std::isfinite(weight)) return config_error("p must not be negative, got " + shown(weight));
      sum += weight;
    }
    if (!o.p.empty() && sum <= 0) return config_error("p must have a number above 0");
    std::optional<Inferred> all;
    const Inferred before = state_;
    for (std::size_t i = 0; i < o.chains.size(); ++i) {
      FEEDLINE_TRY(const Inferred one, nested(o.chains[i], before));
      if (!o.p.empty() && o.p[i] == 0) continue;
      FEEDLINE_CHECK_OK(all ? take_either(one, *all) : take(one));
      all = state_;
    }
    return {};
  }
  // Any of them may be the first, so each must fit the image as it comes.
  Check operator()(const op::RandomOrder& o) {
    const Inferred before = state_;
    Inferred after = before;
    int resizing = 0;
    for (const Operation& operation : o.operations) {
      FEEDLINE_TRY(const Inferred one, nested(std::span(&operation, 1), before));
      if (one.channels != before.channels && after.channels != before.channels && one.channels != after.channels)
        return config_error("the number of channels would hang on the order");
      if (one.channels != before.channels) after.channels = one.channels;
      if (!changes_size(operation)) continue;
      ++resizing;
      after.size = one.size;
    }
    FEEDLINE_CHECK_OK(take(after));
    if (resizing > 1) state_.size.reset();
    if (resizing > 1) state_.open_by = holder_;
    return {};
  }
  Check operator()(const op::Normalize& o) {
    FEEDLINE_CHECK_OK(check_statistics("mean", o.mean));
    FEEDLINE_CHECK_OK(check_statistics("std", o.std));
    for (const float std : o.std)
      if (std == 0 || (state_.dtype == DType::kFloat16 && from_half(to_half(std)) == 0))
        return config_error("std must not be 0, got " + shown(std) + " on " + std::string(name_of(state_.dtype)));
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
  static bool same_size(const Inferred& a, const Inferred& b) {
    return a.size.has_value() == b.size.has_value() &&
           (!a.size || (a.size->width == b.size->width && a.size->height == b.size->height));
  }
  // What comes of operations in an operation.
  Result<Inferred> nested(std::span<const Operation> operations, const Inferred& before) {
    if (level_ == kMostLevels)
      return config_error("operations in operations go " + std::to_string(kMostLevels) + " levels deep at most");
    if (operations.size() > kMostNested)
      return config_error("it holds at most " + std::to_string(kMostNested) + " operations, got " +
                          std::to_string(operations.size()));
    Inferred state = before;
    Inference inference(state, level_ + 1);
    for (const Operation& operation : operations) {
      const std::string name(name_of(operation));
      if (std::holds_alternative<op::Normalize>(operation) || std::holds_alternative<op::ToDtype>(operation))
        return config_error(name + ": the type of an image's values cannot depend on chance: put it behind");
      if (!operation.fields.empty()) return config_error(name + ": fields= goes to the operation that holds it");
      if (auto checked = inference.apply(operation, false); !checked)
        return config_error(name + ": " + checked.error().what);
    }
    return state;
  }
  Check take(const Inferred& done) {
    state_ = done;
    return {};
  }
  // Now this, now that.
  Check take_either(const Inferred& one, const Inferred& other) {
    if (one.channels != other.channels)
      return config_error("its outcomes have " + std::to_string(std::min(one.channels, other.channels)) + " and " +
                          std::to_string(std::max(one.channels, other.channels)) + " channels");
    const bool same = same_size(one, other);
    FEEDLINE_CHECK_OK(take(one));
    if (same) return {};
    state_.size.reset();
    state_.open_by = holder_;
    return {};
  }
  Check check_longest(const op::Resize& o) {
    if (!o.max_size) return config_error("size or max_size is needed");
    FEEDLINE_CHECK_OK(check_side("max_size", *o.max_size));
    FEEDLINE_CHECK_OK(needs_pixels());
    return state_.size ? gives(resized_size(*state_.size, o)) : Check{};
  }
  // A size that is drawn, or depends on the image's.
  Check gives_any() {
    FEEDLINE_CHECK_OK(needs_pixels());
    state_.size.reset();
    return {};
  }
  Check gives(Size size) {
    FEEDLINE_CHECK_OK(check_size(size));
    state_.size = size;
    state_.open_by.clear();
    return {};
  }
  Check check_moved(Interpolation interpolation) const {
    switch (interpolation) {
      case Interpolation::kNearest:
      case Interpolation::kBilinear:
      case Interpolation::kBicubic:
      case Interpolation::kRandom:
        return needs_pixels();
      case Interpolation::kBox:
      case Interpolation::kLanczos:
      case Interpolation::kTorchBilinear:
      case Interpolation::kTorchBicubic:
        break;
    }
    return config_error("interpolation must be nearest, bilinear, bicubic or random, got " +
                        std::string(interpolation == Interpolation::kBox       ? "box"
                                    : interpolation == Interpolation::kLanczos ? "lanczos"
                                                                               : "one of torch's resizes"));
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
  const int level_;          // of operations in operations
  std::string_view holder_;  // the operation at hand
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
    first = first && (std::holds_alternative<op::Skipped>(operation) || std::holds_alternative<op::Boxes>(operation));
  }
  return state;
}

}  // namespace feedline::transform
