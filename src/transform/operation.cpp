// SPDX-License-Identifier: Apache-2.0
#include "feedline/operation.h"

#include <array>
#include <charconv>
#include <string>
#include <type_traits>
#include <utility>

#include "base/check.h"
#include "transform/augmentation_policy.h"

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
    case Interpolation::kLanczos:
      return "lanczos";
    case Interpolation::kRandom:
      return "random";
    case Interpolation::kTorchBilinear:
      return "torch_bilinear";
    case Interpolation::kTorchBicubic:
      return "torch_bicubic";
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

std::string filled(const std::array<std::uint8_t, 3>& fill) {
  const std::string red = number(int{fill[0]});
  if (fill[0] == fill[1] && fill[1] == fill[2]) return ", fill=" + red;
  return ", fill=(" + red + ", " + number(int{fill[1]}) + ", " + number(int{fill[2]}) + ")";
}

std::string fill_and_mode(const std::array<std::uint8_t, 3>& fill, PaddingMode mode) {
  if (mode != PaddingMode::kConstant) return ", padding_mode=" + std::string(name_of(mode));
  return fill == std::array<std::uint8_t, 3>{} ? "" : filled(fill);
}

std::string interpolated(Interpolation interpolation) {
  return interpolation == Interpolation::kBilinear ? "" : ", interpolation=" + std::string(name_of(interpolation));
}

std::string arguments(const op::Decode& o) {
  const std::string mode = o.mode == ColorMode::kRgb ? "RGB" : "L";
  const std::string fidelity = o.fidelity == Fidelity::kExact    ? ""
                               : o.fidelity == Fidelity::kNvjpeg ? ", device=cuda"
                                                                 : ", fidelity=" + std::string(name_of(o.fidelity));
  return mode + fidelity + (o.applies_exif ? ", apply_exif_orientation=True" : "");
}
std::string arguments(const op::Resize& o) {
  std::string text = o.size.height == 0 ? "None" : o.size.width == 0 ? number(o.size.height) : "(" + size(o.size) + ")";
  if (o.max_size) text += ", max_size=" + number(*o.max_size);
  return text + interpolated(o.interpolation);
}
std::string arguments(const op::CenterCrop& o) {
  return size(o.size) + fill_and_mode(o.fill, o.padding_mode) + (o.rounds_down ? ", rounding=down" : "");
}
std::string arguments(const op::RandomCropOrPad& o) { return size(o.size) + fill_and_mode(o.fill, o.padding_mode); }
std::string arguments(const op::CornerCrop& o) {
  constexpr std::string_view kCorners[] = {"top_left", "top_right", "bottom_left", "bottom_right", "center"};
  return size(o.size) + ", corner=" + std::string(kCorners[static_cast<std::size_t>(o.corner)]);
}
std::string arguments(const op::TrimBorder& o) { return number(o.border); }
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
std::string arguments(const op::Boxes& o) {
  return std::string(name_of(o.format)) + (o.clamps ? "" : ", clamping_mode=None") +
         (o.takes_unsound ? ", unsound=keep" : "");
}
std::string arguments(const op::SanitizeBoundingBoxes& o) {
  std::string text = "min_size=" + number(o.min_size) + ", min_area=" + number(o.min_area);
  return o.labels.empty() ? text : text + ", labels=" + list(o.labels);
}
std::string arguments(const op::RandomIouCrop& o) {
  std::string options;
  for (const double option : o.sampler_options) options += (options.empty() ? "" : ", ") + number(option);
  return "min_scale=" + number(o.min_scale) + ", max_scale=" + number(o.max_scale) +
         ", min_aspect_ratio=" + number(o.min_aspect_ratio) + ", max_aspect_ratio=" + number(o.max_aspect_ratio) +
         ", sampler_options=[" + options + "], trials=" + number(o.trials);
}
std::string arguments(const op::RandomZoomOut& o) {
  return "side_range=" + pair(o.side_range.low, o.side_range.high) + ", p=" + number(o.p) +
         fill_and_mode(o.fill, PaddingMode::kConstant);
}
std::string arguments(const op::RandomPhotometricDistort& o) {
  return "brightness=" + pair(o.brightness.low, o.brightness.high) +
         ", contrast=" + pair(o.contrast.low, o.contrast.high) +
         ", saturation=" + pair(o.saturation.low, o.saturation.high) + ", hue=" + pair(o.hue.low, o.hue.high) +
         ", p=" + number(o.p);
}
std::string version_of(TorchvisionVersion version) { return version == TorchvisionVersion::kV1 ? "" : ", version=v2"; }
std::string arguments(const op::AutoAugment& o) {
  constexpr std::string_view kPolicies[] = {"imagenet", "cifar10", "svhn"};
  return "policy=" + std::string(kPolicies[static_cast<std::size_t>(o.policy)]) + moved(o.interpolation, o.fill) +
         version_of(o.version);
}
std::string arguments(const op::RandAugment& o) {
  return "num_ops=" + number(o.num_ops) + ", magnitude=" + number(o.magnitude) +
         ", num_magnitude_bins=" + number(o.num_magnitude_bins) + moved(o.interpolation, o.fill) +
         version_of(o.version);
}
std::string arguments(const op::TrivialAugmentWide& o) {
  return "num_magnitude_bins=" + number(o.num_magnitude_bins) + moved(o.interpolation, o.fill) + version_of(o.version);
}
std::string arguments(const op::AugMix& o) {
  return "severity=" + number(o.severity) + ", mixture_width=" + number(o.mixture_width) +
         ", chain_depth=" + number(o.chain_depth) + ", alpha=" + number(o.alpha) +
         (o.all_ops ? "" : ", all_ops=False") + interpolated(o.interpolation) +
         fill_and_mode(o.fill, PaddingMode::kConstant);
}
std::string arguments(const op::TimmAugment& o) {
  std::string text = "'" + o.config + "'" + fill_and_mode(o.fill, PaddingMode::kConstant);
  if (o.interpolation != Interpolation::kRandom) text += ", interpolation=" + std::string(name_of(o.interpolation));
  return text + ", translate_pct=" + number(o.translate);
}
std::string arguments(const op::GaussianBlur& o) {
  return "kernel_size=(" + number(o.kernel_size[0]) + ", " + number(o.kernel_size[1]) +
         "), sigma=" + pair(o.sigma.low, o.sigma.high);
}
std::string arguments(const op::RandomErasing& o) {
  using Noise = op::RandomErasing::Noise;
  const std::string ranges =
      pair(o.scale.low, o.scale.high) + (o.is_timms ? ", aspect=" : ", ratio=") + pair(o.ratio.low, o.ratio.high);
  if (o.is_timms) {
    constexpr std::string_view kModes[] = {"const", "rand", "pixel"};
    return "p=" + number(o.p) + ", area=" + ranges +
           ", mode=" + std::string(kModes[static_cast<std::size_t>(o.noise)]) +
           ", count=" + pair(o.count[0], o.count[1]);
  }
  const std::string value = o.value.size() == 1 ? number(o.value[0]) : list(o.value);
  return "p=" + number(o.p) + ", scale=" + ranges + ", value=" + (o.noise == Noise::kNone ? value : "random");
}
std::string chain(const std::vector<Operation>& operations) {
  std::string text = "[";
  for (const Operation& operation : operations) text += (text.size() > 1 ? ", " : "") + describe(operation);
  return text + "]";
}
std::string arguments(const op::RandomApply& o) { return chain(o.operations) + ", p=" + number(o.p); }
std::string arguments(const op::RandomChoice& o) {
  std::string text;
  for (const auto& operations : o.chains) text += (text.empty() ? "[" : ", ") + chain(operations);
  text += "]";
  for (const double& weight : o.p) text += (&weight == o.p.data() ? ", p=(" : ", ") + number(weight);
  return text + (o.p.empty() ? "" : ")");
}
std::string arguments(const op::RandomOrder& o) { return chain(o.operations); }
std::string around(const std::optional<std::array<double, 2>>& center) {
  return center ? ", center=" + pair((*center)[0], (*center)[1]) : "";
}
std::string arguments(const op::RandomRotation& o) {
  return "degrees=" + pair(o.degrees.low, o.degrees.high) + (o.expand ? ", expand=True" : "") + around(o.center) +
         moved(o.interpolation, o.fill);
}
std::string arguments(const op::RandomAffine& o) {
  std::string text = "degrees=" + pair(o.degrees.low, o.degrees.high);
  if (o.translate) text += ", translate=" + pair((*o.translate)[0], (*o.translate)[1]);
  if (o.scale) text += ", scale=" + pair(o.scale->low, o.scale->high);
  if (o.shear_x) {
    text += ", shear=(" + number(o.shear_x->low) + ", " + number(o.shear_x->high);
    text += (o.shear_y ? ", " + number(o.shear_y->low) + ", " + number(o.shear_y->high) : "") + ")";
  }
  return text + around(o.center) + moved(o.interpolation, o.fill);
}
std::string arguments(const op::RandomPerspective& o) {
  return "distortion_scale=" + number(o.distortion_scale) + ", p=" + number(o.p) + interpolated(o.interpolation) +
         fill_and_mode(o.fill, PaddingMode::kConstant);
}
std::string arguments(const op::ElasticTransform& o) {
  return "alpha=" + pair(o.alpha[0], o.alpha[1]) + ", sigma=" + pair(o.sigma[0], o.sigma[1]) +
         interpolated(o.interpolation) + fill_and_mode(o.fill, PaddingMode::kConstant);
}
std::string arguments(const op::RandomResize& o) {
  return "min_size=" + number(o.min_size) + ", max_size=" + number(o.max_size) + interpolated(o.interpolation);
}
std::string arguments(const op::RandomShortSide& o) {
  std::string text = "min_size=(";
  for (const int side : o.min_sizes) text += number(side) + ", ";
  text.resize(text.size() - (o.min_sizes.size() == 1 ? 1 : 2));
  return text + ")" + (o.max_size ? ", max_size=" + number(*o.max_size) : "") + interpolated(o.interpolation);
}
std::string arguments(const op::ScaleJitter& o) {
  return "target_size=(" + number(o.target_size[0]) + ", " + number(o.target_size[1]) +
         "), scale_range=" + pair(o.scale_range.low, o.scale_range.high) + interpolated(o.interpolation);
}
std::string arguments(const op::ResizeKeepRatio& o) {
  std::string text = size(o.size) + (o.longest != 0 ? ", longest=" + number(o.longest) : "");
  if (o.scale_p > 0)
    text += ", random_scale_prob=" + number(o.scale_p) +
            ", random_scale_range=" + pair(o.scale_range.low, o.scale_range.high) +
            (o.scales_area ? ", random_scale_area=True" : "");
  if (o.aspect_p > 0)
    text += ", random_aspect_prob=" + number(o.aspect_p) +
            ", random_aspect_range=" + pair(o.aspect_range.low, o.aspect_range.high);
  return text + interpolated(o.interpolation);
}
std::string placed(PadPosition position) { return position == PadPosition::kCenter ? "" : ", position=top_left"; }
std::string arguments(const op::PadTo& o) {
  return size(o.size) + fill_and_mode(o.fill, o.padding_mode) + placed(o.position);
}
std::string arguments(const op::Letterbox& o) {
  return size(o.size) + filled(o.fill) + interpolated(o.interpolation) + (o.scale_up ? "" : ", scaleup=False") +
         (o.position == PadPosition::kCenter ? "" : ", center=False");
}
std::string arguments(const op::Normalize& o) { return "mean=" + list(o.mean) + ", std=" + list(o.std); }
std::string arguments(const op::Skipped&) { return ""; }
std::string arguments(const op::ToDtype& o) { return std::string(name_of(o.dtype)) + (o.scale ? ", scale=True" : ""); }

struct Name {
  std::string_view operator()(const op::Decode&) const { return "decode"; }
  std::string_view operator()(const op::Resize&) const { return "resize"; }
  std::string_view operator()(const op::CenterCrop&) const { return "center_crop"; }
  std::string_view operator()(const op::CornerCrop&) const { return "corner_crop"; }
  std::string_view operator()(const op::TrimBorder&) const { return "trim_border"; }
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
  std::string_view operator()(const op::Boxes&) const { return "boxes"; }
  std::string_view operator()(const op::SanitizeBoundingBoxes&) const { return "sanitize_bounding_boxes"; }
  std::string_view operator()(const op::RandomIouCrop&) const { return "random_iou_crop"; }
  std::string_view operator()(const op::RandomZoomOut&) const { return "random_zoom_out"; }
  std::string_view operator()(const op::RandomPhotometricDistort&) const { return "random_photometric_distort"; }
  std::string_view operator()(const op::AutoAugment&) const { return "auto_augment"; }
  std::string_view operator()(const op::RandAugment&) const { return "rand_augment"; }
  std::string_view operator()(const op::TrivialAugmentWide&) const { return "trivial_augment_wide"; }
  std::string_view operator()(const op::AugMix&) const { return "aug_mix"; }
  std::string_view operator()(const op::TimmAugment&) const { return "timm_augment"; }
  std::string_view operator()(const op::GaussianBlur&) const { return "gaussian_blur"; }
  std::string_view operator()(const op::RandomErasing& o) const {
    return o.is_timms ? "timm_random_erasing" : "random_erasing";
  }
  std::string_view operator()(const op::RandomApply&) const { return "random_apply"; }
  std::string_view operator()(const op::RandomChoice&) const { return "random_choice"; }
  std::string_view operator()(const op::RandomOrder&) const { return "random_order"; }
  std::string_view operator()(const op::RandomRotation&) const { return "random_rotation"; }
  std::string_view operator()(const op::RandomAffine&) const { return "random_affine"; }
  std::string_view operator()(const op::RandomPerspective&) const { return "random_perspective"; }
  std::string_view operator()(const op::ElasticTransform&) const { return "elastic_transform"; }
  std::string_view operator()(const op::RandomResize&) const { return "random_resize"; }
  std::string_view operator()(const op::RandomShortSide&) const { return "random_short_side"; }
  std::string_view operator()(const op::ScaleJitter&) const { return "scale_jitter"; }
  std::string_view operator()(const op::RandomCropOrPad&) const { return "random_crop_or_pad"; }
  std::string_view operator()(const op::ResizeKeepRatio&) const { return "resize_keep_ratio"; }
  std::string_view operator()(const op::PadTo&) const { return "pad_to"; }
  std::string_view operator()(const op::Letterbox&) const { return "letterbox"; }
};

}  // namespace

Operation::Operation() = default;
Operation::Operation(const Operation& other) = default;
Operation::Operation(Operation&& other) noexcept = default;
Operation& Operation::operator=(const Operation& other) = default;
Operation& Operation::operator=(Operation&& other) noexcept = default;
Operation::~Operation() = default;

std::string_view name_of(Fidelity fidelity) {
  constexpr std::string_view kNames[] = {"exact", "fast", "nvjpeg"};
  return kNames[static_cast<std::size_t>(fidelity)];
}

std::string_view name_of(BoxFormat format) {
  constexpr std::string_view kNames[] = {"XYXY", "XYWH", "CXCYWH"};
  return kNames[static_cast<std::size_t>(format)];
}

std::string_view name_of(Augmentation augmentation) {
  constexpr std::string_view kNames[] = {"identity",  "shear_x",    "shear_y",      "translate_x",  "translate_y",
                                         "rotate",    "brightness", "color",        "contrast",     "sharpness",
                                         "posterize", "solarize",   "solarize_add", "autocontrast", "equalize",
                                         "invert",    "grayscale",  "gaussian_blur"};
  return kNames[static_cast<std::size_t>(augmentation)];
}

Result<Operation> timm_augment(op::TimmAugment augment) {
  FEEDLINE_TRY(transform::TimmPolicy policy, transform::TimmPolicy::parse(augment.config, augment.translate));
  augment.policy = std::make_shared<const transform::TimmPolicy>(std::move(policy));
  return augment;
}

std::string_view name_of(const Operation& operation) { return std::visit(Name{}, operation); }

std::string describe(const Operation& operation) {
  std::string text = std::visit([](const auto& o) { return arguments(o); }, operation);
  if (!operation.fields.empty()) text += std::string(text.empty() ? "" : ", ") + "fields=" + list(operation.fields);
  return std::string(name_of(operation)) + "(" + text + ")";
}

}  // namespace feedline
