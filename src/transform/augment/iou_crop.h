// SPDX-License-Identifier: Apache-2.0
#pragma once

// random_iou_crop is the only operation whose draws depend on a sample's boxes. The crop is drawn when boxes are
// processed; images, masks and points of the sample reuse it.

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/random.h"
#include "feedline/operation.h"

namespace feedline::transform {

// The crops drawn for one sample. Each thread reuses one object.
class IouCrops {
 public:
  void clear() { drawn_.clear(); }
  // stream: the operation's stream. crop: nullopt for no crop.
  void note(std::uint32_t stream, const std::optional<Box>& crop) { drawn_.push_back({stream, crop}); }
  // Returns nullptr if nothing was drawn for the operation with that stream.
  const std::optional<Box>* find(std::uint32_t stream) const {
    for (const Drawn& drawn : drawn_)
      if (drawn.stream == stream) return &drawn.crop;
    return nullptr;
  }

 private:
  struct Drawn {
    std::uint32_t stream;
    std::optional<Box> crop;
  };
  std::vector<Drawn> drawn_;
};

template <typename Number>
using Corners = std::array<Number, 4>;  // left, top, right, bottom

// Draws by torchvision's rule. If there is a crop, marks in `inside` the boxes whose centre is in it. Number: float or
// std::int64_t. Requires: type inference has accepted the operation.
template <typename Number>
std::optional<Box> draw_iou_crop(const op::RandomIouCrop& operation, Size image, std::span<const Corners<Number>> boxes,
                                 base::Random& random, std::vector<std::uint8_t>& inside);

}  // namespace feedline::transform
