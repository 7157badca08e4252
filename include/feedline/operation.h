// SPDX-License-Identifier: Apache-2.0
#pragma once

// The operations a Dataset can chain. Names, arguments, defaults and sampling rules are torchvision's
// (torchvision.transforms, v1, on PIL images); sizes are {height, width} as there.

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "feedline/array.h"
#include "feedline/error.h"

namespace feedline {

namespace transform {
class ImageOperation;
class TimmPolicy;
}  // namespace transform
struct Operation;

// kRandom: bilinear or bicubic, drawn for each image. kTorchBilinear, kTorchBicubic: for resizes, with the arithmetic
// of torch for uint8 tensors with antialiasing (16-bit weights, horizontal pass first) instead of Pillow's.
enum class Interpolation : std::uint8_t {
  kNearest,
  kBox,
  kBilinear,
  kBicubic,
  kLanczos,
  kRandom,
  kTorchBilinear,
  kTorchBicubic
};
// What AutoAugment's policy was learned on.
enum class AutoAugmentPolicy : std::uint8_t { kImageNet, kCifar10, kSvhn };
// The magnitudes of automatic augmentations: torchvision.transforms or torchvision.transforms.v2.
enum class TorchvisionVersion : std::uint8_t { kV1, kV2 };
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
  kGaussianBlur,
};
enum class Corner : std::uint8_t { kTopLeft, kTopRight, kBottomLeft, kBottomRight, kCenter };
enum class PaddingMode : std::uint8_t { kConstant, kEdge, kReflect, kSymmetric };
// The format of a box's four numbers, in pixels: two corners; the upper left corner and the sides; the centre and the
// sides.
enum class BoxFormat : std::uint8_t { kXyxy, kXywh, kCxcywh };
// Where an image stands in a larger one.
enum class PadPosition : std::uint8_t { kCenter, kTopLeft };
enum class ColorMode : std::uint8_t { kRgb, kL };  // Pillow's mode names: 3 channels, 1 channel
// kExact: Pillow's pixels, bit for bit. kFast: JPEGs that are made much smaller are decoded at a part of their size,
// and coloured after the resize: nearly the same pixels (docs/fidelity.md says how nearly); else kExact's. kNvjpeg: the
// GPU that a loader's batches are on decodes JPEGs, to nearly the same pixels; everything else, and without a loader
// everything, is kExact's.
enum class Fidelity : std::uint8_t { kExact, kFast, kNvjpeg };

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
  bool applies_exif = false;  // turns the image as its EXIF orientation says, before anything else looks at it
};
// size.width == 0: the smaller edge becomes size.height and the other keeps the aspect ratio (torchvision's
// int size), limited by max_size. size {0, 0}: the larger edge becomes max_size. Always antialiased, as PIL is; nearest
// never is.
struct Resize {
  Size size;
  std::optional<int> max_size;
  Interpolation interpolation = Interpolation::kBilinear;
};
// Where the image is smaller than size it is padded first: with zeros, as torchvision does, or as timm's
// CenterCropOrPad is told. Half of an odd difference is rounded to the even number, as torchvision does, or down, as
// Hugging Face's image processors do.
struct CenterCrop {
  Size size;
  std::array<std::uint8_t, 3> fill{};
  PaddingMode padding_mode = PaddingMode::kConstant;
  bool rounds_down = false;
};
// The crop in a corner, or in the middle: what Dataset::five_crop and ten_crop are made of. The image must be as large.
struct CornerCrop {
  Size size;
  Corner corner = Corner::kTopLeft;
};
// timm's: without so many pixels at each edge. The image must have some left.
struct TrimBorder {
  int border = 0;
};
struct RandomCrop {
  Size size;
  Padding padding;
  bool pad_if_needed = false;
  std::array<std::uint8_t, 3> fill{};
  PaddingMode padding_mode = PaddingMode::kConstant;
};
// timm's: anywhere in the image; where that is smaller, the image anywhere in the crop.
struct RandomCropOrPad {
  Size size;
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
// Factors are already ranges; hue in [-0.5, 0.5]. The order of the four changes is drawn per sample.
struct ColorJitter {
  Range brightness, contrast, saturation;
  Range hue{0, 0};
};
// One change with probability p, as torchvision's RandomInvert, RandomPosterize, RandomSolarize, RandomAdjustSharpness,
// RandomAutocontrast, RandomEqualize and RandomGrayscale. No other augmentation stands here.
struct RandomChange {
  Augmentation augmentation = Augmentation::kInvert;
  double amount = 0;  // remaining bits, threshold, or factor; 0 for other operations
  double p = 0.5;
};
// What the boxes of a field are: of the field that `Operation::fields` names. Changes nothing by itself.
struct Boxes {
  BoxFormat format = BoxFormat::kXyxy;
  bool clamps = true;  // what moves boxes cuts them off at the image's edges: torchvision's clamping_mode "soft"
  // Stored boxes that are inverted, wholly outside of the image or no numbers are taken too, as torchvision takes them.
  bool takes_unsound = false;
};
// torchvision v2's SanitizeBoundingBoxes: removes boxes that are small or not entirely inside the image, and the
// corresponding rows of `labels`.
struct SanitizeBoundingBoxes {
  double min_size = 1, min_area = 1;
  std::vector<std::string> labels;  // field names
};
// torchvision v2's: a crop that overlaps a box as much as one of sampler_options, drawn first, asks for.
struct RandomIouCrop {
  double min_scale = 0.3, max_scale = 1;
  double min_aspect_ratio = 0.5, max_aspect_ratio = 2;
  std::vector<double> sampler_options{0, 0.1, 0.3, 0.5, 0.7, 0.9, 1};  // 1 or more: no crop
  int trials = 40;
};
// torchvision v2's RandomZoomOut: places the image at a random position on a larger canvas.
struct RandomZoomOut {
  std::array<std::uint8_t, 3> fill{};
  Range side_range{1, 4};
  double p = 0.5;
};
// torchvision v2's RandomPhotometricDistort: each of four changes with probability p, then a channel permutation with
// probability p.
struct RandomPhotometricDistort {
  Range brightness{0.875, 1.125}, contrast{0.5, 1.5}, saturation{0.5, 1.5};
  Range hue{-0.05, 0.05};
  double p = 0.5;
};
// Geometry of the three: what comes from outside the image is `fill`.
struct AutoAugment {
  AutoAugmentPolicy policy = AutoAugmentPolicy::kImageNet;
  Interpolation interpolation = Interpolation::kNearest;
  std::array<std::uint8_t, 3> fill{};
  TorchvisionVersion version = TorchvisionVersion::kV1;
};
struct RandAugment {
  int num_ops = 2;
  int magnitude = 9;  // magnitude bin
  int num_magnitude_bins = 31;
  Interpolation interpolation = Interpolation::kNearest;
  std::array<std::uint8_t, 3> fill{};
  TorchvisionVersion version = TorchvisionVersion::kV1;
};
struct TrivialAugmentWide {
  int num_magnitude_bins = 31;
  Interpolation interpolation = Interpolation::kNearest;
  std::array<std::uint8_t, 3> fill{};
  TorchvisionVersion version = TorchvisionVersion::kV1;
};
// torchvision's AugMix: `mixture_width` chains of AugMix's changes, weighted and added to the image.
struct AugMix {
  int severity = 3;  // magnitudes are among the first so many of 10 bins
  int mixture_width = 3;
  int chain_depth = -1;  // below 1: 1 to 3, drawn for each chain
  double alpha = 1.0;    // parameter of the Dirichlet and Beta distributions
  bool all_ops = true;   // include brightness, colour, contrast and sharpness
  Interpolation interpolation = Interpolation::kBilinear;
  std::array<std::uint8_t, 3> fill{};
};
// What one of timm's strings describes: timm_augment() makes it.
struct TimmAugment {
  std::string config;                                    // "rand-m9-mstd0.5-inc1"
  std::array<std::uint8_t, 3> fill{};                    // timm's img_mean
  Interpolation interpolation = Interpolation::kRandom;  // drawn for each geometric change
  double translate = 0.45;                               // as a share of the image's side, at level 10
  std::shared_ptr<const transform::TimmPolicy> policy;
};

// torchvision's GaussianBlur: one sigma for both axes, drawn per sample.
struct GaussianBlur {
  std::array<int, 2> kernel_size{3, 3};  // x, y; odd
  Range sigma{0.1, 2.0};
};
// Writes over random rectangles, with torchvision's rules (one of them), or timm's. Before normalize and to_dtype these
// are pixels; behind them what the batch's row then holds, in its units.
struct RandomErasing {
  // kColour: one standard normal number per channel and rectangle. kValues: one per value.
  enum class Noise : std::uint8_t { kNone, kColour, kValues };
  double p = 0.5;
  Range scale{0.02, 0.33};      // of the image's area, which the rectangles share
  Range ratio{0.3, 3.3};        // height over width, log-uniform
  std::vector<float> value{0};  // one, or one per channel; where there is no noise
  Noise noise = Noise::kNone;
  std::array<int, 2> count{1, 1};  // minimum and maximum number of rectangles
  bool is_timms = false;
};

// Operations in an operation. An operation in them may hold operations again, one level deep. Without normalize and
// to_dtype, and without `fields`.
struct RandomApply {
  std::vector<Operation> operations;
  double p = 0.5;  // probability that all of them are applied
};
struct RandomChoice {
  std::vector<std::vector<Operation>> chains;  // one of them is done
  std::vector<double> p;                       // weights; equal if empty
};
struct RandomOrder {
  std::vector<Operation> operations;
};
// An angle in degrees counterclockwise, around `center` (x, y in pixels; nullopt: the middle).
struct RandomRotation {
  Range degrees{-90, 90};
  Interpolation interpolation = Interpolation::kNearest;
  bool expand = false;  // the image grows until it holds all of the rotated one
  std::optional<std::array<double, 2>> center;
  std::array<std::uint8_t, 3> fill{};
};
// Degrees clockwise; `translate`: maximum, as shares of width and height; shears in degrees.
struct RandomAffine {
  Range degrees{-90, 90};
  std::optional<std::array<double, 2>> translate;
  std::optional<Range> scale, shear_x, shear_y;
  Interpolation interpolation = Interpolation::kNearest;
  std::array<std::uint8_t, 3> fill{};
  std::optional<std::array<double, 2>> center;
};
// Moves each corner inwards by at most half of the image's size times distortion_scale.
struct RandomPerspective {
  double distortion_scale = 0.5;
  double p = 0.5;
  Interpolation interpolation = Interpolation::kBilinear;
  std::array<std::uint8_t, 3> fill{};
};
// torchvision v2's ElasticTransform: a pixel moves by noise from -1 to 1, blurred by sigma pixels, times alpha pixels
// (x, y).
struct ElasticTransform {
  std::array<double, 2> alpha{50, 50}, sigma{5, 5};
  Interpolation interpolation = Interpolation::kBilinear;
  std::array<std::uint8_t, 3> fill{};
};
// torchvision v2's RandomResize: the smaller edge becomes at least min_size and less than max_size.
struct RandomResize {
  int min_size = 1, max_size = 2;
  Interpolation interpolation = Interpolation::kBilinear;
};
// torchvision v2's RandomShortestSize: the smaller edge becomes one of min_sizes, the larger at most max_size.
struct RandomShortSide {
  std::vector<int> min_sizes;
  std::optional<int> max_size;
  Interpolation interpolation = Interpolation::kBilinear;
};
// torchvision v2's ScaleJitter: the largest size that fits into target_size, times a factor. As there, target_size[0]
// is for the width.
struct ScaleJitter {
  std::array<int, 2> target_size{1, 1};
  Range scale_range{0.1, 2.0};
  Interpolation interpolation = Interpolation::kBilinear;
};
// timm's: both sides by one ratio, by which the image covers `size` (longest 0), fits into it (1), or between. Drawn,
// each with its probability: a factor for both sides (scales_area: of the part that `size` will show), and one of their
// aspect ratio.
struct ResizeKeepRatio {
  Size size;
  double longest = 0;
  Interpolation interpolation = Interpolation::kBilinear;
  double scale_p = 0;
  Range scale_range{0.85, 1.05};
  bool scales_area = false;
  double aspect_p = 0;
  Range aspect_range{0.9, 1.11};
};
// A border where the image is smaller; one that is larger is an error.
struct PadTo {
  Size size;
  std::array<std::uint8_t, 3> fill{};
  PaddingMode padding_mode = PaddingMode::kConstant;
  PadPosition position = PadPosition::kCenter;
};
// Ultralytics' LetterBox: resizes to the largest size that fits into `size` and pads the rest. With scale_up = false
// smaller images are not enlarged.
struct Letterbox {
  Size size;
  std::array<std::uint8_t, 3> fill{114, 114, 114};
  Interpolation interpolation = Interpolation::kBilinear;
  bool scale_up = true;
  PadPosition position = PadPosition::kCenter;
};
// Implies to_dtype(float32, scale=true) for uint8 input: (x / 255 - mean) / std, per channel.
struct Normalize {
  std::vector<float> mean, std;
};
// Stands in a list for an operation on other fields, so that those behind it keep their place: what is drawn goes by
// it.
struct Skipped {};
// scale=true: uint8 to float divides by 255 (torchvision v2 ToDtype). Float to uint8 is rejected.
struct ToDtype {
  DType dtype = DType::kFloat32;
  bool scale = false;
};

}  // namespace op

namespace op {
// Found by argument-dependent lookup: every struct of this namespace holds the arguments of an operation.
template <typename Arguments>
void holds_arguments(const Arguments& arguments);
}  // namespace op

template <typename T>
concept OperationArguments = requires(const T& arguments) {
  holds_arguments(arguments);
};

// An operation with its arguments, and the fields it is for. Cheap to copy: copies share the arguments, which do not
// change.
struct Operation {
  Operation();  // op::Skipped
  // Instantiated in the source file of each operation: src/transform/ops.
  template <OperationArguments Arguments>
  Operation(Arguments arguments);
  explicit Operation(std::shared_ptr<const transform::ImageOperation> operation);

  const transform::ImageOperation& operator*() const { return *operation_; }
  const transform::ImageOperation* operator->() const { return operation_.get(); }

  std::vector<std::string> fields = {};  // field names; empty: every image, and also the targets if the operation is
                                         // geometric

 private:
  std::shared_ptr<const transform::ImageOperation> operation_;
};

// `config` is read. kConfig: it is no policy of timm's, or one that is not in this version.
Result<Operation> timm_augment(op::TimmAugment augment);

std::string_view name_of(const Operation& operation);  // "random_resized_crop"
std::string_view name_of(Fidelity fidelity);           // "exact", "fast"
std::string_view name_of(BoxFormat format);            // "XYXY"
std::string_view name_of(Augmentation augmentation);   // "shear_x"
std::string describe(const Operation& operation);      // "random_resized_crop(224, 224, scale=(0.08, 1), ...)"

enum class Layout : std::uint8_t { kNchw, kNhwc };

// A crop box, in pixels of the image that it applies to.
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
  std::string view = {};  // of Dataset::views: "global_a", "local[3]"; empty: it holds for all
};

}  // namespace feedline
