// SPDX-License-Identifier: Apache-2.0
#pragma once

// A drawn change of where pixels stand that is no crop, resize, flip or border: in torchvision's own parameters, so
// that images, masks, boxes and points can each follow by their own rules.

#include <array>
#include <optional>
#include <span>
#include <variant>

#include "base/random.h"
#include "feedline/operation.h"
#include "feedline/pixel_operation.h"
#include "transform/kernels/aligned_vector.h"

namespace feedline::transform {

// F.affine: degrees clockwise, translation in pixels, shear in degrees, around `center` (nullopt: the middle).
struct AffineWarp {
  double angle = 0;
  Point translate{};
  double scale = 1;
  Point shear{};
  std::optional<Point> center;
};
// F.rotate: degrees counterclockwise. `expand`: the image grows until it holds all of the rotated one.
struct RotationWarp {
  double angle = 0;
  bool expand = false;
  std::optional<Point> center;
};
// F.perspective: the corners `start` (top left, top right, bottom right, bottom left) come to stand at `end`.
struct PerspectiveWarp {
  std::array<Point, 4> start{}, end{};
};
// F.elastic by a displacement that follows from the key and the stream: elastic_displacement() makes it.
struct ElasticWarp {
  Point alpha{}, sigma{};
  base::SampleKey key;
  std::uint32_t stream = 0;
};

// Small, and copied freely.
struct Warp {
  std::variant<AffineWarp, RotationWarp, PerspectiveWarp, ElasticWarp> parameters;
  Interpolation interpolation = Interpolation::kNearest;  // of images; not kRandom
  Colour fill{};                                          // likewise
};

// The image's after it: another one where a rotation expands.
Size size_after(const Warp& warp, Size image);

// What an image of this size becomes by it. Requires: it is not elastic.
PixelOperation pixel_operation(const Warp& warp, Size image);

// Scratch of one thread.
struct ElasticScratch {
  AlignedVector<float> columns, rows;  // weights, from the middle outwards
  AlignedVector<float> bordered, blurred;
  AlignedVector<float> displacement;
};
// torchvision v2's: uniform noise, blurred, times alpha over the image's side. Height x width of what is added to x,
// then the same for y, as pixel_op::Elastic takes it; valid until the next call with that scratch.
std::span<const float> elastic_displacement(const ElasticWarp& elastic, Size size, ElasticScratch& scratch);

// torchvision's rules (RandomRotation, RandomAffine, RandomPerspective) for an image of this size.
RotationWarp draw_rotation(const op::RandomRotation& rotation, base::Random& random);
AffineWarp draw_affine(const op::RandomAffine& affine, Size image, base::Random& random);
PerspectiveWarp draw_perspective(double distortion_scale, Size image, base::Random& random);

}  // namespace feedline::transform
