// SPDX-License-Identifier: Apache-2.0
#include "feedline/operation.h"

#include <array>
#include <charconv>
#include <string>
#include <type_traits>

namespace feedline {
namespace {

std::string_view name_of(Interpolation interpolation) {
  switch (interpolation) {
    case Interpolation::kNearest:
      return "nearest";
    case Interpolation::kBox:
      return "box";
    case Interpolation::kBilinear:
      return "bilinear";
    case Interpolation::kBicubic:
      return "bicubic";
  }
  return "unknown";
}

std::string_view name_of(PaddingMode mode) {
  switch (mode) {
    case PaddingMode::kConstant:
      return "constant";
    case PaddingMode::kEdge:
      return "edge";
    case PaddingMode::kReflect:
      return "reflect";
    case PaddingMode::kSymmetric:
      return "symmetric";
  }
  return "unknown";
}

// Shortest decimal that reads back as the same number.
template <typename T>
std::string number(T value) {
  char digits[40];
  const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  return std::string(digits, end);
}

std::string pair(double low, double high) { return "(" + number(low) + ", " + number(high) + ")"; }

std::string list(const std::vector<float>& values) {
  std::string text = "(";
  for (const float value : values) text += (text.size() > 1 ? ", " : "") + number(value);
  return text + (values.size() == 1 ? ",)" : ")");
}

std::string list(const std::vector<std::string>& words) {
  std::string text = "(";
  for (const std::string& word : words) text += (text.size() > 1 ? ", '" : "'") + word + "'";
  return text + (words.size() == 1 ? ",)" : ")");
}

std::string size(Size size) { return number(size.height) + ", " + number(size.width); }

std::string border(const Padding& padding) {
  return "(" + number(padding.left) + ", " + number(padding.top) + ", " + number(padding.right) + ", " +
         number(padding.bottom) + ")";
}

std::string fill_and_mode(const std::array<std::uint8_t, 3>& fill, PaddingMode mode) {
  if (mode != PaddingMode::kConstant) return ", padding_mode=" + std::string(name_of(mode));
  const std::string red = number(int{fill[0]});
  if (fill[0] == fill[1] && fill[1] == fill[2]) return fill[0] == 0 ? "" : ", fill=" + red;
  return ", fill=(" + red + ", " + number(int{fill[1]}) + ", " + number(int{fill[2]}) + ")";
}

std::string interpolated(Interpolation interpolation) {
  return interpolation == Interpolation::kBilinear ? "" : ", interpolation=" + std::string(name_of(interpolation));
}

std::string arguments(const op::Decode& o) {
  const std::string mode = o.mode == ColorMode::kRgb ? "RGB" : "L";
  return o.fidelity == Fidelity::kExact ? mode : mode + ", fidelity=" + std::string(name_of(o.fidelity));
}
std::string arguments(const op::Resize& o) {
  std::string text = o.size.width == 0 ? number(o.size.height) : "(" + size(o.size) + ")";
  if (o.max_size) text += ", max_size=" + number(*o.max_size);
  return text + interpolated(o.interpolation);
}
std::string arguments(const op::CenterCrop& o) { return size(o.size); }
std::string arguments(const op::RandomCrop& o) {
  const bool pads = o.padding.left || o.padding.top || o.padding.right || o.padding.bottom;
  std::string text = size(o.size);
  if (pads) text += ", padding=" + border(o.padding);
  if (o.pad_if_needed) text += ", pad_if_needed=True";
  return pads || o.pad_if_needed ? text + fill_and_mode(o.fill, o.padding_mode) : text;
}
std::string arguments(const op::RandomResizedCrop& o) {
  return size(o.size) + ", scale=" + pair(o.scale.low, o.scale.high) + ", ratio=" + pair(o.ratio.low, o.ratio.high) +
         interpolated(o.interpolation);
}
std::string arguments(const op::RandomHorizontalFlip& o) { return "p=" + number(o.p); }
std::string arguments(const op::RandomVerticalFlip& o) { return "p=" + number(o.p); }
std::string arguments(const op::Pad& o) { return border(o.padding) + fill_and_mode(o.fill, o.padding_mode); }
std::string arguments(const op::Grayscale& o) { return "num_output_channels=" + number(o.num_output_channels); }
std::string arguments(const op::ColorJitter& o) {
  return "brightness=" + pair(o.brightness.low, o.brightness.high) +
         ", contrast=" + pair(o.contrast.low, o.contrast.high) +
         ", saturation=" + pair(o.saturation.low, o.saturation.high) + ", hue=" + pair(o.hue.low, o.hue.high);
}
std::string arguments(const op::RandomChange& o) {
  switch (o.augmentation) {
    case Augmentation::kPosterize:
      return "bits=" + number(o.amount) + ", p=" + number(o.p);
    case Augmentation::kSolarize:
      return "threshold=" + number(o.amount) + ", p=" + number(o.p);
    case Augmentation::kSharpness:
      return "sharpness_factor=" + number(o.amount) + ", p=" + number(o.p);
    default:
      return "p=" + number(o.p);
  }
}
// Of an automatic augmentation, whose default is nearest.
std::string moved(Interpolation interpolation, const std::array<std::uint8_t, 3>& fill) {
  std::string text =
      interpolation == Interpolation::kNearest ? "" : ", interpolation=" + std::string(name_of(interpolation));
  return text + fill_and_mode(fill, PaddingMode::kConstant);
}
std::string arguments(const op::AutoAugment& o) {
  constexpr std::string_view kPolicies[] = {"imagenet", "cifar10", "svhn"};
  return "policy=" + std::string(kPolicies[static_cast<std::size_t>(o.policy)]) + moved(o.interpolation, o.fill);
}
std::string arguments(const op::RandAugment& o) {
  return "num_ops=" + number(o.num_ops) + ", magnitude=" + number(o.magnitude) +
         ", num_magnitude_bins=" + number(o.num_magnitude_bins) + moved(o.interpolation, o.fill);
}
std::string arguments(const op::TrivialAugmentWide& o) {
  return "num_magnitude_bins=" + number(o.num_magnitude_bins) + moved(o.interpolation, o.fill);
}
std::string arguments(const op::Normalize& o) { return "mean=" + list(o.mean) + ", std=" + list(o.std); }
std::string arguments(const op::Skipped&) { return ""; }
std::string arguments(const op::ToDtype& o) { return std::string(name_of(o.dtype)) + (o.scale ? ", scale=True" : ""); }

struct Name {
  std::string_view operator()(const op::Decode&) const { return "decode"; }
  std::string_view operator()(const op::Resize&) const { return "resize"; }
  std::string_view operator()(const op::CenterCrop&) const { return "center_crop"; }
  std::string_view operator()(const op::RandomCrop&) const { return "random_crop"; }
  std::string_view operator()(const op::RandomResizedCrop&) const { return "random_resized_crop"; }
  std::string_view operator()(const op::RandomHorizontalFlip&) const { return "random_horizontal_flip"; }
  std::string_view operator()(const op::RandomVerticalFlip&) const { return "random_vertical_flip"; }
  std::string_view operator()(const op::Pad&) const { return "pad"; }
  std::string_view operator()(const op::Grayscale&) const { return "grayscale"; }
  std::string_view operator()(const op::ColorJitter&) const { return "color_jitter"; }
  std::string_view operator()(const op::Normalize&) const { return "normalize"; }
  std::string_view operator()(const op::ToDtype&) const { return "to_dtype"; }
  std::string_view operator()(const op::Skipped&) const { return "skipped"; }
  std::string_view operator()(const op::RandomChange& o) const {
    switch (o.augmentation) {
      case Augmentation::kInvert:
        return "random_invert";
      case Augmentation::kPosterize:
        return "random_posterize";
      case Augmentation::kSolarize:
        return "random_solarize";
      case Augmentation::kSharpness:
        return "random_adjust_sharpness";
      case Augmentation::kAutoContrast:
        return "random_autocontrast";
      case Augmentation::kEqualize:
        return "random_equalize";
      case Augmentation::kGrayscale:
        return "random_grayscale";
      default:
        return "random_change";
    }
  }
  std::string_view operator()(const op::AutoAugment&) const { return "auto_augment"; }
  std::string_view operator()(const op::RandAugment&) const { return "rand_augment"; }
  std::string_view operator()(const op::TrivialAugmentWide&) const { return "trivial_augment_wide"; }
};

}  // namespace

std::string_view name_of(Fidelity fidelity) { return fidelity == Fidelity::kExact ? "exact" : "fast"; }

std::string_view name_of(Augmentation augmentation) {
  constexpr std::string_view kNames[] = {"identity",  "shear_x",    "shear_y",      "translate_x",  "translate_y",
                                         "rotate",    "brightness", "color",        "contrast",     "sharpness",
                                         "posterize", "solarize",   "solarize_add", "autocontrast", "equalize",
                                         "invert",    "grayscale"};
  return kNames[static_cast<std::size_t>(augmentation)];
}

std::string_view name_of(const Operation& operation) { return std::visit(Name{}, operation); }

std::string describe(const Operation& operation) {
  std::string text = std::visit([](const auto& o) { return arguments(o); }, operation);
  if (!operation.fields.empty()) text += std::string(text.empty() ? "" : ", ") + "fields=" + list(operation.fields);
  return std::string(name_of(operation)) + "(" + text + ")";
}

}  // namespace feedline
