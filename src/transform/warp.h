// SPDX-License-Identifier: Apache-2.0
#pragma once

// A drawn geometric change other than a crop, resize, flip or border. The parameters are torchvision's, so that images,
// masks, boxes and points can each follow their own rules.

#include <array>
#include <optional>
#include <span>
#include <variant>

#include "base/random.h"
#include "feedline/operation.h"
#include "feedline/pixel_operation.h"
#include "transform/kernels/aligned_vector.h"

namespace feedline::transform {

// F.affine: degrees clockwise, translation in pixels, and shear in degrees, around `center` (nullopt: the centre of the
// image).
struct AffineWarp {
  double angle = 0;
  Point translate{};
  double scale = 1;
  Point shear{};
  std::optional<Point> center;
};
// F.rotate: degrees counterclockwise. expand: the output is large enough for the whole rotated image.
struct RotationWarp {
  double angle = 0;
  bool expand = false;
  std::optional<Point> center;
};
// F.perspective: moves the corners `start` (top left, top right, bottom right, bottom left) to `end`.
struct PerspectiveWarp {
  std::array<Point, 4> start{}, end{};
};
// F.elastic, with the displacement that elastic_displacement() computes from the key and the stream.
struct ElasticWarp {
  Point alpha{}, sigma{};
  base::SampleKey key;
  std::uint32_t stream = 0;
};

// A warp is small and cheap to copy.
struct Warp {
  std::variant<AffineWarp, RotationWarp, PerspectiveWarp, ElasticWarp> parameters;
  Interpolation interpolation = Interpolation::kNearest;  // of images; not kRandom
  Colour fill{};                                          // for images
};

// Returns the size of the image after the warp, which differs only for expanding rotations.
Size size_after(const Warp& warp, Size image);

// Returns the warp as an operation on the pixels of an image of this size. Requires: the warp is not elastic.
PixelOperation pixel_operation(const Warp& warp, Size image);

// One thread's scratch.
struct ElasticScratch {
  AlignedVector<float> columns, rows;  // weights, from the middle outwards
  AlignedVector<float> bordered, blurred;
  AlignedVector<float> displacement;
};
// Computes torchvision v2's displacement: blurred uniform noise times alpha, divided by the side of the image. Returns
// height x width offsets in x, and then as many in y, as pixel_op::Elastic expects them; valid until the next call with
// the same scratch memory.
std::span<const float> elastic_displacement(const ElasticWarp& elastic, Size size, ElasticScratch& scratch);

// Draw by torchvision's rules (RandomRotation, RandomAffine, RandomPerspective) for an image of this size.
RotationWarp draw_rotation(const op::RandomRotation& rotation, base::Random& random);
AffineWarp draw_affine(const op::RandomAffine& affine, Size image, base::Random& random);
PerspectiveWarp draw_perspective(double distortion_scale, Size image, base::Random& random);

}  // namespace feedline::transform
