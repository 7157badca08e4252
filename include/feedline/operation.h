// SPDX-License-Identifier: Apache-2.0
#pragma once

// The operations of a Dataset. Names, arguments, defaults and sampling rules are those of torchvision.transforms (v1)
// for PIL images, including sizes as {height, width}.

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

// kRandom draws bilinear or bicubic for each image. For resizes, kTorchBilinear and kTorchBicubic use torch's
// arithmetic for uint8 tensors with antialiasing (16-bit weights, horizontal pass first) instead of Pillow's.
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
// The dataset on which AutoAugment's policy was learned.
enum class AutoAugmentPolicy : std::uint8_t { kImageNet, kCifar10, kSvhn };
// Whether automatic augmentations use the magnitudes of torchvision.transforms or torchvision.transforms.v2.
enum class TorchvisionVersion : std::uint8_t { kV1, kV2 };
// An operation that preserves the image's size. Automatic augmentations choose from these operations.
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
// The format of a box's four numbers in pixels: two corners, the upper left corner and the size, or the centre and the
// size.
enum class BoxFormat : std::uint8_t { kXyxy, kXywh, kCxcywh };
// The position of an image on a larger canvas.
enum class PadPosition : std::uint8_t { kCenter, kTopLeft };
enum class ColorMode : std::uint8_t { kRgb, kL };  // Pillow's mode names: 3 channels, 1 channel
// kExact matches Pillow's pixels bit for bit. kFast decodes JPEGs at a reduced scale if a later operation shrinks them
// a lot, and converts colours after the resize; docs/fidelity.md lists the pixel differences. Other formats are exact.
// With kNvjpeg, the GPU that receives a loader's batches decodes JPEGs, with small pixel differences. Other formats,
// and samples read without a loader, are exact.
enum class Fidelity : std::uint8_t { kExact, kFast, kNvjpeg };

// The values of decoded pixels. kBytes are 8 bits, converted as Pillow does. The others are the stored values,
// unscaled, as uint16, as float32, or in the dtype of the file.
enum class PixelValues : std::uint8_t { kBytes, kUint16, kFloat32, kNative };

struct Size {
  int height = 0;
  int width = 0;
};

// left, top, right, bottom, in pixels
struct Padding {
  int left = 0, top = 0, right = 0, bottom = 0;
};

// The closed range of a random factor. {1, 1} leaves the image unchanged, and so does {0, 0} for hue.
struct Range {
  double low = 1;
  double high = 1;
};

namespace op {

struct Decode {
  ColorMode mode = ColorMode::kRgb;
  Fidelity fidelity = Fidelity::kExact;
  bool applies_exif = false;                 // rotates the image by its EXIF orientation before any other step
  PixelValues values = PixelValues::kBytes;  // unless kBytes, images have as many channels as stored, and `mode` and
                                             // `fidelity` are the defaults
  int page = 0;                              // of a TIFF; unless 0, `values` is not kBytes
};
// If size.width is 0 (torchvision's int size), the smaller edge becomes size.height, or less if the larger edge would
// exceed max_size; the aspect ratio is preserved. If size is {0, 0}, the larger edge becomes max_size. As in PIL, all
// filters except nearest use antialiasing.
struct Resize {
  Size size;
  std::optional<int> max_size;
  Interpolation interpolation = Interpolation::kBilinear;
};
// An image smaller than `size` is padded first: with zeros as in torchvision, or with the padding of timm's
// CenterCropOrPad. Half of an odd difference is rounded to the nearest even integer as in torchvision, or down as in
// Hugging Face's image processors.
struct CenterCrop {
  Size size;
  std::array<std::uint8_t, 3> fill{};
  PaddingMode padding_mode = PaddingMode::kConstant;
  bool rounds_down = false;
};
// Crops a corner or the centre, for Dataset::five_crop and ten_crop. The image must not be smaller than the crop.
struct CornerCrop {
  Size size;
  Corner corner = Corner::kTopLeft;
};
// timm's TrimBorder: removes `border` pixels from each edge. At least one pixel must remain.
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
// timm's RandomCropOrPad: crops at a random position, or pads a smaller image and places it at a random position.
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
// The factors are ranges; hue is in [-0.5, 0.5]. The order of the four changes is drawn per sample.
struct ColorJitter {
  Range brightness, contrast, saturation;
  Range hue{0, 0};
};
// Applies one augmentation with probability p, like torchvision's RandomInvert, RandomPosterize, RandomSolarize,
// RandomAdjustSharpness, RandomAutocontrast, RandomEqualize and RandomGrayscale. No other augmentations are supported
// here.
struct RandomChange {
  Augmentation augmentation = Augmentation::kInvert;
  double amount = 0;  // remaining bits, threshold, or factor; 0 for other operations
  double p = 0.5;
};
// Declares the format of the box field that `Operation::fields` names. Does not change any data.
struct Boxes {
  BoxFormat format = BoxFormat::kXyxy;
  bool clamps = true;  // operations clip boxes at the image's edges: torchvision's clamping_mode "soft"
  // Like torchvision, also accepts stored boxes that are inverted, entirely outside the image, or NaN.
  bool takes_unsound = false;
};
// torchvision v2's SanitizeBoundingBoxes: removes boxes that are small or not entirely inside the image, and the
// corresponding rows of `labels`.
struct SanitizeBoundingBoxes {
  double min_size = 1, min_area = 1;
  std::vector<std::string> labels;  // field names
};
// torchvision v2's RandomIoUCrop: draws a minimum overlap from sampler_options, then crops so that the overlap with
// some box is at least that large.
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
// torchvision v2's RandomPhotometricDistort: changes brightness, contrast, saturation and hue with probability p each,
// then permutes the channels with probability p.
struct RandomPhotometricDistort {
  Range brightness{0.875, 1.125}, contrast{0.5, 1.5}, saturation{0.5, 1.5};
  Range hue{-0.05, 0.05};
  double p = 0.5;
};
// Geometric augmentations fill the area outside the image with `fill`.
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
// torchvision's AugMix: adds the weighted results of `mixture_width` chains of augmentations to the image.
struct AugMix {
  int severity = 3;  // magnitudes are drawn from the first `severity` of 10 bins
  int mixture_width = 3;
  int chain_depth = -1;  // below 1: drawn from 1 to 3 for each chain
  double alpha = 1.0;    // parameter of the Dirichlet and Beta distributions
  bool all_ops = true;   // include brightness, colour, contrast and sharpness
  Interpolation interpolation = Interpolation::kBilinear;
  std::array<std::uint8_t, 3> fill{};
};
// The policy that a timm configuration string describes; see timm_augment().
struct TimmAugment {
  std::string config;                                    // "rand-m9-mstd0.5-inc1"
  std::array<std::uint8_t, 3> fill{};                    // timm's img_mean
  Interpolation interpolation = Interpolation::kRandom;  // drawn for each geometric change
  double translate = 0.45;                               // as a fraction of the image's side, at level 10
  std::shared_ptr<const transform::TimmPolicy> policy;
};

// torchvision's GaussianBlur: one sigma for both axes, drawn per sample.
struct GaussianBlur {
  std::array<int, 2> kernel_size{3, 3};  // x, y; odd
  Range sigma{0.1, 2.0};
};
// Overwrites random rectangles by timm's rules, or one rectangle by torchvision's rules. Before normalize and to_dtype,
// RandomErasing changes uint8 pixels. After normalize or to_dtype, it changes the converted values, and `value` must be
// in the unit of these values.
struct RandomErasing {
  // kColour draws one standard normal number for each channel of a rectangle; kValues draws one for each value in the
  // rectangle.
  enum class Noise : std::uint8_t { kNone, kColour, kValues };
  double p = 0.5;
  Range scale{0.02, 0.33};      // fraction of the image's area, divided among the rectangles
  Range ratio{0.3, 3.3};        // height divided by width, log-uniform
  std::vector<float> value{0};  // one, or one per channel; used without noise
  Noise noise = Noise::kNone;
  std::array<int, 2> count{1, 1};  // minimum and maximum number of rectangles
  bool is_timms = false;
};

// Nested operations. Operations can be nested two levels deep. Nested operations cannot be normalize or to_dtype, and
// cannot set `fields`.
struct RandomApply {
  std::vector<Operation> operations;
  double p = 0.5;  // probability that all of them are applied
};
struct RandomChoice {
  std::vector<std::vector<Operation>> chains;  // one of them is applied
  std::vector<double> p;                       // weights; equal if empty
};
struct RandomOrder {
  std::vector<Operation> operations;
};
// Rotates counterclockwise by an angle in degrees around `center` (x, y in pixels), by default the centre of the image.
struct RandomRotation {
  Range degrees{-90, 90};
  Interpolation interpolation = Interpolation::kNearest;
  bool expand = false;  // enlarges the result to contain the whole rotated image
  std::optional<std::array<double, 2>> center;
  std::array<std::uint8_t, 3> fill{};
};
// Angles are in degrees clockwise, shears in degrees; `translate` is the maximum, as fractions of width and height.
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
// torchvision v2's ElasticTransform: displaces pixels by random noise from -1 to 1 that is blurred by sigma pixels and
// multiplied by alpha pixels (x, y).
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
// torchvision v2's ScaleJitter: resizes to the largest size that fits into target_size, times a random factor. As in
// torchvision, target_size[0] is the width.
struct ScaleJitter {
  std::array<int, 2> target_size{1, 1};
  Range scale_range{0.1, 2.0};
  Interpolation interpolation = Interpolation::kBilinear;
};
// timm's ResizeKeepRatio: scales both sides by the same ratio. With longest = 0, the image covers `size`; with longest
// = 1, it fits into `size`; values in between interpolate the ratio. With probability scale_p, a random factor scales
// both sides, or the visible area if scales_area is set. With probability aspect_p, a random factor changes the aspect
// ratio.
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
// Pads an image to `size`. An image that is larger than `size` is an error.
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
// Implies to_dtype(float32, scale=true) for 8-bit pixels: (x / 255 - mean) / std, per channel. Stored values
// (PixelValues) are not scaled: (x - mean) / std.
struct Normalize {
  std::vector<float> mean, std;
};
// Limits values to a window of the given width around `level`, as for CT images, and scales it to 0 ... 1, as float32:
// clip((x - level + width / 2) / width, 0, 1). The unit is that of the values: 0 to 255 for 8-bit pixels.
struct Window {
  double level = 0, width = 1;
};
// How audio is delivered: a part of the file, in seconds, resampled to `rate`, or at the file's own rate.
struct Audio {
  std::optional<int> rate;
  bool mono = true;           // the mean of all channels
  std::vector<int> channels;  // indexes of the chosen channels; empty: all. Not with mono
  double offset = 0;
  std::optional<double> duration;  // nullopt: to the end
  bool random = false;             // draws the start of the part from [offset, end - duration]
  DType dtype = DType::kFloat32;   // or int16
};
// Multiplies audio by a factor drawn in decibels.
struct RandomGain {
  Range gain{-6, 6};  // dB
  double p = 1;
};
// Adds a random part of a random file at a signal-to-noise ratio that is drawn uniformly. Shorter files are repeated.
struct AddNoise {
  std::vector<std::string> noise;  // paths
  Range snr{10, 20};               // dB
  double p = 1;
};
// Plays the file faster by a factor drawn from `factors`, by resampling, which changes the pitch too. Runs before the
// part is chosen, so offset and duration are seconds of the faster or slower sound.
struct SpeedPerturbation {
  std::vector<double> factors{0.9, 1.0, 1.1};
};
// How a clip's frames are chosen.
enum class ClipSampling : std::uint8_t {
  kRandom,    // a start drawn for each clip
  kUniform,   // the middles of equal parts of all possible starts
  kSegments,  // TSN's: one frame drawn in each of `frames` equal parts of the video
};
// Delivers a video as clips: `frames` frames, every `every`-th one, or those shown at `fps` times a second for
// `seconds`.
struct Clip {
  std::optional<int> frames;
  int every = 1;
  std::optional<double> fps, seconds;
  ClipSampling sampling = ClipSampling::kRandom;
  int clips = 1;                // of each video; several form another axis
  std::optional<double> start;  // the first frame's number or, with fps, its time in seconds; not sampled
  bool timestamps = false;      // also delivers the frames' times
  bool pad = false;             // repeats the last frame of a video that is shorter than the clip
  bool audio = false;           // also delivers the sound from the first frame's time to the end of the last frame
  std::optional<int> stream;    // nullopt: FFmpeg's best video stream
};
// Delivers chosen frames of a video: by number, or those shown at some times.
struct Frames {
  std::vector<int> frames;    // negative numbers count from the end
  std::vector<double> times;  // seconds since the first frame
  bool timestamps = false;
  std::optional<int> stream;
};
// A patch of a volume. `size` has the extents of the cropped axes, in voxels.
struct Patch {
  std::vector<int> size;
  bool pad = false;  // fills voxels outside the volume with zeros; otherwise they are an error
};
// A patch at a random position. With probability `share`, it is centred on a voxel of the field `foreground` whose
// label is in `values`, or above 0 if `values` is empty.
struct RandomPatch : Patch {
  std::string foreground;
  double share = 0;
  std::vector<int> values;
};
struct CenterPatch : Patch {};
// A patch at the position that its sample has in a grid; see PatchOptions.
struct GridPatch : Patch {};
// Operations on volumes. Axes are counted among the last three axes of a patch, or among the first three for NIfTI.
// Flips each axis with probability `p`.
struct RandomFlip {
  std::vector<int> axes{0, 1, 2};
  double p = 0.5;
};
// With probability `p`, rotates by 90, 180 or 270 degrees in the plane of two axes.
struct RandomRotate90 {
  std::vector<int> axes{0, 1};
  double p = 0.5;
};
// With probability `p`, rotates around each axis by an angle in degrees, drawn uniformly, and magnifies by a factor
// whose inverse is drawn uniformly. Images are interpolated linearly, labels nearest; outside the volume is `fill`.
struct RandomAffine3d {
  Range degrees{-15, 15};
  Range scale{1, 1};
  double p = 1;
  double fill = 0;
};
// Factors of gamma, brightness and contrast are below and above 1 with equal probability, if their range has both, and
// uniform there, as in nnU-Net.
// x becomes ((x - low) / (high - low)) ^ gamma * (high - low) + low, with the range of the patch.
struct RandomGamma {
  Range gamma{0.7, 1.5};
  double p = 0.3;
  bool invert = false;        // applies the exponent to -x
  bool retain_stats = false;  // restores the mean and the standard deviation
};
struct RandomGaussianNoise {
  Range std{0, 0.1};
  double p = 0.1;
};
struct RandomGaussianBlur {
  Range sigma{0.5, 1};  // voxels
  double p = 0.2;
};
struct RandomBrightness {
  Range factor{0.75, 1.25};
  double p = 0.15;
};
// Multiplies the distance from the mean.
struct RandomContrast {
  Range factor{0.75, 1.25};
  double p = 0.15;
  bool preserve_range = true;
};
// Samples down by a factor with the nearest voxels, and up again linearly.
struct RandomLowResolution {
  Range scale{0.5, 1};
  double p = 0.25;
};
// (x - mean) / std, in the units of the stored values.
struct Standardize {
  double mean = 0, std = 1;
};
// A placeholder for an operation that applies to other fields. The placeholder preserves the indexes of later
// operations, on which random draws depend.
struct Skipped {};
// With scale = true, converting uint8 to float divides by 255, like ToDtype of torchvision v2. Converting float to
// uint8 is not supported.
struct ToDtype {
  DType dtype = DType::kFloat32;
  bool scale = false;
};

}  // namespace op

namespace op {
// Marks the structs in this namespace as arguments of operations, through argument-dependent lookup.
template <typename Arguments>
void holds_arguments(const Arguments& arguments);
}  // namespace op

template <typename T>
concept OperationArguments = requires(const T& arguments) {
  holds_arguments(arguments);
};

// An operation with its arguments and the fields that it applies to. Cheap to copy: copies share the immutable
// arguments.
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

// Parses `config`. Fails with kConfig if the string is not a timm policy, or if this version does not support the
// policy.
Result<Operation> timm_augment(op::TimmAugment augment);

std::string_view name_of(const Operation& operation);  // "random_resized_crop"
std::string_view name_of(Fidelity fidelity);           // "exact", "fast"
std::string_view name_of(BoxFormat format);            // "XYXY"
std::string_view name_of(Augmentation augmentation);   // "shear_x"
std::string describe(const Operation& operation);      // "random_resized_crop(224, 224, scale=(0.08, 1), ...)"

enum class Layout : std::uint8_t { kNchw, kNhwc };

// A crop box in pixels of the image.
struct Box {
  int left = 0, top = 0, width = 0, height = 0;
  friend bool operator==(const Box&, const Box&) = default;
};

// The values that a random or size-dependent operation uses for one sample, as returned by Dataset::draw. Examples are
// "crop" {left, top, width, height}, "flip" {0|1}, "brightness" {factor} and "shear_x" {tangent}.
struct DrawnValue {
  std::string operation;
  std::string name;
  std::vector<double> values;
  std::string view = {};  // the view of Dataset::views, such as "global_a" or "local[3]"; empty: applies to all views
};

}  // namespace feedline
