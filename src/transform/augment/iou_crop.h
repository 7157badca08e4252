// SPDX-License-Identifier: Apache-2.0
#pragma once

// random_iou_crop: the one operation whose drawing follows from a sample's boxes. The boxes draw it, and images, masks
// and points of the sample follow.

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/random.h"
#include "feedline/operation.h"

namespace feedline::transform {

// What was drawn for one sample. A thread keeps one and reuses it.
class IouCrops {
 public:
  void clear() { drawn_.clear(); }
  // stream: of the operation. nullopt: no crop.
  void note(std::uint32_t stream, const std::optional<Box>& crop) { drawn_.push_back({stream, crop}); }
  // nullptr: nothing was drawn for the operation with that stream.
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

// torchvision's rule. Where there is a crop, `inside` says which boxes have their centre in it. Number: float or
// std::int64_t. Requires: inference accepted the operation.
template <typename Number>
std::optional<Box> draw_iou_crop(const op::RandomIouCrop& operation, Size image, std::span<const Corners<Number>> boxes,
                                 base::Random& random, std::vector<std::uint8_t>& inside);

}  // namespace feedline::transform
