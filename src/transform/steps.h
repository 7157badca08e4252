// SPDX-License-Identifier: Apache-2.0
#pragma once

// What will be done to one image: the drawn operations, fused. Crops move towards the source (into the decoder's
// region, into the window of a resize or a border), flips towards the output.

#include <array>
#include <variant>
#include <vector>

#include "feedline/operation.h"
#include "feedline/pixel_operation.h"
#include "transform/augmentation_level.h"
#include "transform/axis_table.h"
#include "transform/chain.h"
#include "transform/sampling.h"

namespace feedline::transform {

struct CropStep {
  Box box;
};
struct ResizeStep {
  Size in, out;  // of the whole resize
  Box window;    // the part of `out` that is made
  Interpolation interpolation = Interpolation::kBilinear;
  bool flip_x = false;    // the window comes out mirrored
  int left = 0, top = 0;  // the pixel of `in` where the given pixels start
};
struct FlipStep {
  bool x = false, y = false;
};
struct PadStep {
  Padding padding;
  PaddingMode mode = PaddingMode::kConstant;
  std::array<std::uint8_t, 3> fill{};
  Box window;  // the part of the padded image that is made
};
struct GrayscaleStep {
  int channels = 1;  // 0: as many as the image has
};
struct JitterStep {
  JitterDrawing drawing;
};
struct PixelStep {
  PixelOperation operation;
};
using Step = std::variant<CropStep, ResizeStep, FlipStep, PadStep, GrayscaleStep, JitterStep, PixelStep>;

// What one operation decided, for people and tests.
struct Decision {
  enum class Kind : std::uint8_t { kCrop, kFlip, kSize, kPadding, kJitter, kAugmentation };
  int operation = 0;  // index in the chain
  Kind kind = Kind::kCrop;
  Box box;
  bool flip = false;
  Size size;
  Padding padding;
  JitterDrawing jitter;
  DrawnAugmentation augmentation;
};

struct Drawing::Steps {
  std::vector<Step> list;
  bool flip_x = false, flip_y = false;  // left for the output
  std::vector<Decision> decisions;
};

// Appends operations to a Drawing, fusing as it goes. One object per draw.
class StepBuilder {
 public:
  StepBuilder(Size image, Drawing& drawing);

  Size size() const { return size_; }
  void crop(Box box);  // Requires: inside the image
  void resize(Size out, Interpolation interpolation);
  void flip(bool x, bool y);
  void pad(const Padding& padding, PaddingMode mode, const std::array<std::uint8_t, 3>& fill);
  void grayscale(int channels);
  void jitter(const JitterDrawing& drawing);
  // Geometry by `interpolation`, with `fill` where the image has no pixel.
  void augment(const DrawnAugmentation& drawn, Interpolation interpolation, const std::array<std::uint8_t, 3>& fill);
  void finish();  // sets drawing.region

 private:
  void flip_now();

  Drawing& drawing_;
  std::vector<Step>& list_;
  Box region_;  // of the source, before the first step
  Size size_;
  bool flip_x_ = false, flip_y_ = false;  // asked for, not yet done
};

// How coarse planes may be that the steps begin with; nullopt where pixels are quicker or needed.
std::optional<memory::Coarseness> useful_planes(const Drawing::Steps& steps);

// The two directions of a resize's window.
AxisRequest columns_of(const ResizeStep& step);
AxisRequest rows_of(const ResizeStep& step);

}  // namespace feedline::transform
