// SPDX-License-Identifier: Apache-2.0
#pragma once

// The operations a Dataset can chain. Names, arguments, defaults and sampling rules are torchvision's
// (torchvision.transforms, v1, on PIL images); sizes are {height, width} as there.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "feedline/array.h"

namespace feedline {

enum class Interpolation : std::uint8_t { kNearest, kBox, kBilinear, kBicubic };
// What AutoAugment's policy was learned on.
enum class AutoAugmentPolicy : std::uint8_t { kImageNet, kCifar10, kSvhn };
// A change of an image that leaves its size: what automatic augmentations choose from.
enum class Augmentation : std::uint8_t {
  kIdentity,
  kShearX,
  kShearY,
  kTranslateX,
  kTranslateY,
  kRotate,
  kBrightness,
  kColor,
  kContrast,
  kSharpness,
  kPosterize,
  kSolarize,
  kSolarizeAdd,
  kAutoContrast,
  kEqualize,
  kInvert,
  kGrayscale,
};
enum class PaddingMode : std::uint8_t { kConstant, kEdge, kReflect, kSymmetric };
enum class ColorMode : std::uint8_t { kRgb, kL };  // Pillow's mode names: 3 channels, 1 channel
// kExact: Pillow's pixels, bit for bit. kFast: JPEGs that are made much smaller are decoded at a part of their size,
// and coloured after the resize: nearly the same pixels (docs/fidelity.md says how nearly); else kExact's.
enum class Fidelity : std::uint8_t { kExact, kFast };

struct Size {
  int height = 0;
  int width = 0;
};

// left, top, right, bottom, in pixels
struct Padding {
  int left = 0, top = 0, right = 0, bottom = 0;
};

// A closed range that a random factor is drawn from; {1, 1} (hue: {0, 0}) leaves the image alone.
struct Range {
  double low = 1;
  double high = 1;
};

namespace op {

struct Decode {
  ColorMode mode = ColorMode::kRgb;
  Fidelity fidelity = Fidelity::kExact;
};
// size.width == 0: the smaller edge becomes size.height and the other keeps the aspect ratio (torchvision's
// int size), limited by max_size. Always antialiased, as PIL is; nearest never is.
struct Resize {
  Size size;
  std::optional<int> max_size;
  Interpolation interpolation = Interpolation::kBilinear;
};
// Pads with zeros where the image is smaller than size, as torchvision does.
struct CenterCrop {
  Size size;
};
struct RandomCrop {
  Size size;
  Padding padding;
  bool pad_if_needed = false;
  std::array<std::uint8_t, 3> fill{};
  PaddingMode padding_mode = PaddingMode::kConstant;
};
struct RandomResizedCrop {
  Size size;
  Range scale{0.08, 1.0};
  Range ratio{3.0 / 4.0, 4.0 / 3.0};
  Interpolation interpolation = Interpolation::kBilinear;
};
struct RandomHorizontalFlip {
  double p = 0.5;
};
struct RandomVerticalFlip {
  double p = 0.5;
};
struct Pad {
  Padding padding;
  std::array<std::uint8_t, 3> fill{};
  PaddingMode padding_mode = PaddingMode::kConstant;
};
struct Grayscale {
  int num_output_channels = 1;  // 1 or 3
};
// Factors already resolved to ranges; hue in [-0.5, 0.5]. Order of the four is drawn per sample.
struct ColorJitter {
  Range brightness, contrast, saturation;
  Range hue{0, 0};
};
// One change with probability p, as torchvision's RandomInvert, RandomPosterize, RandomSolarize, RandomAdjustSharpness,
// RandomAutocontrast, RandomEqualize and RandomGrayscale. No other augmentation stands here.
struct RandomChange {
  Augmentation augmentation = Augmentation::kInvert;
  double amount = 0;  // bits that stay, the threshold, or the factor; of the others 0
  double p = 0.5;
};
// Geometry of the three: what comes from outside the image is `fill`.
struct AutoAugment {
  AutoAugmentPolicy policy = AutoAugmentPolicy::kImageNet;
  Interpolation interpolation = Interpolation::kNearest;
  std::array<std::uint8_t, 3> fill{};
};
struct RandAugment {
  int num_ops = 2;
  int magnitude = 9;  // a bin
  int num_magnitude_bins = 31;
  Interpolation interpolation = Interpolation::kNearest;
  std::array<std::uint8_t, 3> fill{};
};
struct TrivialAugmentWide {
  int num_magnitude_bins = 31;
  Interpolation interpolation = Interpolation::kNearest;
  std::array<std::uint8_t, 3> fill{};
};
// Implies to_dtype(float32, scale=true) when the input is uint8: (x / 255 - mean) / std, per channel.
struct Normalize {
  std::vector<float> mean, std;
};
// Stands in a list for an operation on other fields, so that those behind it keep their place: what is drawn goes by
// it.
struct Skipped {};
// scale=true: uint8 -> float divides by 255 (torchvision v2 ToDtype). Float to uint8 is refused.
struct ToDtype {
  DType dtype = DType::kFloat32;
  bool scale = false;
};

}  // namespace op

namespace op {
using Any = std::variant<Decode, Resize, CenterCrop, RandomCrop, RandomResizedCrop, RandomHorizontalFlip,
                         RandomVerticalFlip, Pad, Grayscale, ColorJitter, Normalize, ToDtype, Skipped, RandomChange,
                         AutoAugment, RandAugment, TrivialAugmentWide>;
}  // namespace op

// One of them, and what it is for.
struct Operation : op::Any {
  using op::Any::Any;
  std::vector<std::string> fields = {};  // names; empty: every image, and every mask if it is about geometry
};

std::string_view name_of(const Operation& operation);  // "random_resized_crop"
std::string_view name_of(Fidelity fidelity);           // "exact", "fast"
std::string_view name_of(Augmentation augmentation);   // "shear_x"
std::string describe(const Operation& operation);      // "random_resized_crop(224, 224, scale=(0.08, 1), ...)"

enum class Layout : std::uint8_t { kNchw, kNhwc };

// A crop box in pixels of the image it applies to.
struct Box {
  int left = 0, top = 0, width = 0, height = 0;
  friend bool operator==(const Box&, const Box&) = default;
};

// What a random or size-dependent operation decided for one sample: "crop" {left, top, width, height},
// "flip" {0|1}, "brightness" {factor}, "shear_x" {tangent} ... The names and values that Dataset::draw reports.
struct DrawnValue {
  std::string operation;
  std::string name;
  std::vector<double> values;
};

}  // namespace feedline
