// SPDX-License-Identifier: Apache-2.0
#pragma once

// torchvision's rules (transforms v1) for drawing the parameters of random operations and for computing sizes. All
// functions are pure, except that drawing advances `random`.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/random.h"
#include "feedline/operation.h"

namespace feedline::transform {

// RandomResizedCrop: makes ten attempts with a random area and a log-uniform aspect ratio; if none fits, uses the
// largest central crop within ratio.
Box draw_resized_crop(Size image, Range scale, Range ratio, base::Random& random);

// RandomCrop: draws the position uniformly. Requires: the crop fits in the image.
Box draw_crop(Size image, Size crop, base::Random& random);

// timm's RandomCropOrPad: if the image is smaller than the crop, the crop starts outside the image.
Box draw_crop_or_pad(Size image, Size crop, base::Random& random);

// RandomErasing: makes ten attempts with a random area (a fraction in `scale`, divided by the number of rectangles) and
// a log-uniform ratio of height to width; returns nullopt if none fits.
std::optional<Box> draw_erased(Size image, Range scale, Range ratio, int count, base::Random& random);

double draw_normal(base::Random& random);               // standard
double draw_gamma(double alpha, base::Random& random);  // of scale 1. Requires: alpha > 0

// AugMix's weights for the image and for its chains; they sum to 1.
struct MixDrawing {
  static constexpr int kMost = 32;
  int width = 0;
  float image = 0;
  std::array<float, kMost> chains{};
  std::optional<float> blended;  // timm: the chains' weights sum to 1, and their sum is blended with the image by this
                                 // weight
  bool in_turn = false;          // timm's b1: blends each chain with the result of the chains before, by its weight
};
// Draws the weights from Dirichlet distributions, like torchvision. Requires: 1 <= width <= kMost.
MixDrawing draw_mix(int width, double alpha, base::Random& random);
MixDrawing draw_timm_mix(int width, double alpha, bool in_turn, base::Random& random);
// Returns the given depth, or draws a depth from 1 to 3 if it is below 1.
int draw_depth(int given, base::Random& random);

// Draws a number below `count`, by weight if there are weights. Requires: count > 0, and there are either no weights or
// `count` weights with one above 0.
std::size_t draw_choice(std::size_t count, std::span<const double> weights, base::Random& random);

// Draws a random order of the numbers 0 to count - 1. Requires: count <= kMostNested.
inline constexpr std::size_t kMostNested = 254;
using Order = std::array<std::uint8_t, kMostNested>;
Order draw_order(std::size_t count, base::Random& random);

// Returns true with probability p.
bool draw_coin(double p, base::Random& random);

struct JitterDrawing {
  std::array<int, 4> order{0, 1, 2, 3};                         // of 0 brightness, 1 contrast, 2 saturation, 3 hue
  std::optional<double> brightness, contrast, saturation, hue;  // nullopt: unchanged
};
JitterDrawing draw_jitter(const op::ColorJitter& jitter, base::Random& random);

// RandomPhotometricDistort.
struct DistortDrawing {
  JitterDrawing jitter;
  bool changes = false;  // true if the jitter changes anything
  std::optional<std::array<std::uint8_t, 3>> channels;
};
DistortDrawing draw_distortion(const op::RandomPhotometricDistort& distort, base::Random& random);

// RandomZoomOut; returns nullopt if the image is not changed.
std::optional<Padding> draw_zoom_out(const op::RandomZoomOut& zoom, Size image, base::Random& random);

// Resize: the given {h, w}; or the shorter edge becomes size.height and the other edge is truncated, limited by
// max_size; or the longer edge becomes max_size. With max_size, a side can be 0 for extreme shapes.
Size resized_size(Size image, const op::Resize& resize);

// Draws for torchvision v2's random resizes: the shorter edge for RandomResize; the size for RandomShortestSize; the
// factor for ScaleJitter, and the resulting size. Sides can be 0.
int draw_edge(const op::RandomResize& resize, base::Random& random);
Size draw_short_side(const op::RandomShortSide& resize, Size image, base::Random& random);
float draw_scale(const Range& range, base::Random& random);
Size jittered_size(const op::ScaleJitter& jitter, Size image, float scale);

// timm's ResizeKeepRatio: the draws and the resulting size. Sides can be 0.
struct RatioDrawing {
  double scale = 1;   // of both sides
  double aspect = 1;  // of width over height
};
RatioDrawing draw_ratio(const op::ResizeKeepRatio& resize, base::Random& random);
Size keep_ratio_size(const op::ResizeKeepRatio& resize, Size image, const RatioDrawing& drawn);

// Letterbox: returns the largest size that fits. A side can be 0.
Size letterboxed_size(Size image, const op::Letterbox& letterbox);
// Returns the border that enlarges an image to `size`. Requires: the image is not larger than `size`.
Padding plan_pad_to(Size image, Size size, PadPosition position);

// CenterCrop: pads smaller images with zeros, and then crops.
struct CenterCropPlan {
  Padding padding;  // all 0 if the image is large enough
  Box box;          // of the padded image
};
CenterCropPlan plan_center_crop(Size image, Size crop, bool rounds_down = false);

// Returns the crop by which torchvision moves boxes and points. The crop starts outside the image if the image is
// smaller. If the difference between the sizes is odd, the crop sometimes starts one pixel after half of the
// difference.
Box central_box(Size image, const op::CenterCrop& crop);
// FiveCrop's. Requires: the crop fits the image.
Box plan_corner_crop(Size image, const op::CornerCrop& crop);

// RandomCrop's borders: `padding`, and then the borders that pad_if_needed adds on both sides of a dimension that is
// too small. These are two separate pads in this order, because border modes read the image after the first one.
struct RandomCropPadding {
  Padding always, width_needed, height_needed;
  Padding sum() const;
};
RandomCropPadding plan_random_crop_padding(Size image, const op::RandomCrop& crop);

Size padded(Size image, const Padding& padding);
bool any(const Padding& padding);

}  // namespace feedline::transform
