// SPDX-License-Identifier: Apache-2.0
#pragma once

// The drawn operations on one image, fused into steps. Crops are moved towards the source (into the decoder's region,
// or the window of a resize or border), and flips towards the output.

#include <array>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "base/random.h"
#include "feedline/operation.h"
#include "feedline/pixel_operation.h"
#include "transform/augment/augmentation_level.h"
#include "transform/augment/sampling.h"
#include "transform/canvas.h"
#include "transform/chain.h"
#include "transform/kernels/axis_table.h"
#include "transform/warp.h"

namespace feedline::transform {

struct CropStep {
  Box box;
};
struct ResizeStep {
  Size in, out;  // of the whole resize
  Box window;    // the part of `out` that is needed
  Interpolation interpolation = Interpolation::kBilinear;
  bool flip_x = false;    // the window is mirrored
  int left = 0, top = 0;  // the position in `in` of the first available pixel
};
struct FlipStep {
  bool x = false, y = false;
};
struct PadStep {
  Padding padding;
  PaddingMode mode = PaddingMode::kConstant;
  std::array<std::uint8_t, 3> fill{};
  Box window;  // the part of the padded image that is needed
};
struct GrayscaleStep {
  int channels = 1;  // 0: the image's number of channels
};
struct JitterStep {
  JitterDrawing drawing;
};
struct PixelStep {
  PixelOperation operation;
};
struct KernelStep {
  const OwnKernel* kernel;
  KernelValues values;
};
// A rectangle that overwrites pixels.
struct Erasure {
  Box box;
  std::array<float, 3> value{};               // per channel
  std::optional<base::Random::Blocks> noise;  // replaces `value` with a normal number for every element
  int operation = 0;                          // index in the chain; it determines the unit of the values
};
struct NoiseStep {
  Erasure erasure;  // with noise
};
// A weighted sum of the image at MixBeginStep and of versions of that image, each changed by the steps before its
// MixAddStep. in_turn: instead of adding, blends each version by its weight with the result so far, starting with the
// image.
struct MixBeginStep {
  float weight = 0;  // of the unchanged image
  bool in_turn = false;
};
struct MixAddStep {
  float weight = 0;
};
struct MixEndStep {
  std::optional<float> blended;  // the weight of the sum when it is blended with the image
};
struct ElasticStep {
  ElasticWarp warp;
  Interpolation interpolation = Interpolation::kBilinear;
  Colour fill{};
};
using Step = std::variant<CropStep, ResizeStep, FlipStep, PadStep, GrayscaleStep, JitterStep, PixelStep, KernelStep,
                          ElasticStep, NoiseStep, MixBeginStep, MixAddStep, MixEndStep>;

// A decision of an operation, for display and for tests.
struct Decision {
  // kBox: a region of the image. kNumber: one of the numbers with the name `label`.
  enum class Kind : std::uint8_t {
    kCrop,
    kFlip,
    kSize,
    kPadding,
    kJitter,
    kAugmentation,
    kBox,
    kNumber,
    kWarp,
    kScale,
    kInterpolation,
    kPermutation
  };
  int operation = 0;      // index in the chain
  std::string_view name;  // of the operation, or of the nested one that decided
  Kind kind = Kind::kCrop;
  Box box;
  bool flip = false;
  Size size;
  Padding padding;
  JitterDrawing jitter;
  DrawnAugmentation augmentation;
  std::string_view label;
  double number = 0;
  bool continues = false;  // continues the list of numbers of the previous decision
  std::array<std::uint8_t, 3> channels{};
  Warp warp;
  double scale = 1;
  Interpolation interpolation = Interpolation::kBilinear;
};

struct Drawing::Steps {
  std::vector<Step> list;
  bool flip_x = false, flip_y = false;  // applied when the output is written
  std::vector<Erasure> erasures;        // in coordinates of the output
  std::vector<Decision> decisions;
};

// Appends operations to a Drawing, and fuses them. A builder is used for one draw.
class StepBuilder final : public Canvas {
 public:
  StepBuilder(Size image, Drawing& drawing);

  Size size() const override { return size_; }
  void crop(const Box& drawn) override;
  void resize(Size out, Interpolation interpolation) override;
  void flip(bool x, bool y) override;
  void pad(const Padding& padding, PaddingMode mode, const Colour& fill) override;
  void warp(const Warp& warp) override;
  void grayscale(int channels) override;
  void jitter(const JitterDrawing& drawing) override;
  using Canvas::run;
  void run(const OwnKernel& kernel, const KernelValues& values, Size out) override;
  void augment(const DrawnAugmentation& drawn, Interpolation interpolation, const Colour& fill) override;
  void change(const PixelOperation& operation, bool moves) override;
  void erase(const Erasure& erasure, bool of_output) override;
  void mix_begin(float weight, bool in_turn) override;
  void mix_add(float weight) override;
  void mix_end(std::optional<float> blended) override;
  void finish();  // sets drawing.region

 private:
  void flip_now();

  Drawing& drawing_;
  std::vector<Step>& list_;
  Box region_;  // of the source, before the first step
  Size size_;
  bool flip_x_ = false, flip_y_ = false;  // pending
};

// Returns the coarsest planes from which the steps can start; nullopt if pixels are faster or required.
std::optional<memory::Coarseness> useful_planes(const Drawing::Steps& steps);

// Return the horizontal and the vertical part of a resize's window.
AxisRequest columns_of(const ResizeStep& step);
AxisRequest rows_of(const ResizeStep& step);

}  // namespace feedline::transform
