// SPDX-License-Identifier: Apache-2.0
#include "decode/png/png_filters.h"

// Each byte depends on the byte to its left, so speed depends on the length of this dependency chain, not on the number
// of operations. All channels of a pixel are therefore processed in parallel. Paeth, the most frequent filter in
// photos, uses vectors of words, written with the compiler's vector extensions. Every x86-64 CPU supports them, and no
// newer instruction shortens the chain.

#include <cstring>

namespace feedline::decode {
namespace {

constexpr std::uint8_t kNone = 0, kSub = 1, kUp = 2, kAverage = 3, kPaeth = kLastFilter;

constexpr std::size_t kLanes = 8;
using ByteLanes [[gnu::vector_size(kLanes)]] = std::uint8_t;
using WordLanes [[gnu::vector_size(2 * kLanes)]] = std::int16_t;

// The channels of one pixel in a vector. The values of the other lanes are unspecified.
template <std::size_t kPixel>
inline WordLanes load(const std::uint8_t* from) {
  ByteLanes bytes{};
  std::memcpy(&bytes, from, kPixel);
  return __builtin_convertvector(bytes, WordLanes);
}

template <std::size_t kPixel>
inline void store(WordLanes words, std::uint8_t* to) {
  const ByteLanes bytes = __builtin_convertvector(words, ByteLanes);
  std::memcpy(to, &bytes, kPixel);
}

inline WordLanes absolute(WordLanes words) { return words < 0 ? -words : words; }
inline WordLanes smaller(WordLanes a, WordLanes b) { return a < b ? a : b; }

// Returns the value of left, above and corner (above left) that is nearest to left + above - corner.
inline WordLanes nearest(WordLanes left, WordLanes above, WordLanes corner) {
  const WordLanes down = above - corner, across = left - corner;  // `down` does not depend on the left pixel
  const WordLanes from_left = absolute(down), from_above = absolute(across), from_corner = absolute(down + across);
  const WordLanes least = smaller(smaller(from_left, from_above), from_corner);
  const WordLanes upper = least == from_above ? above : corner;
  return least == from_left ? left : upper;
}

template <std::size_t kPixel>
void undo_paeth(std::uint8_t* row, const std::uint8_t* above, std::size_t bytes) {
  constexpr std::size_t kAtOnce = kPixel == 3 ? 4 : kPixel == 6 ? 8 : kPixel;  // a single load if possible
  WordLanes left{}, corner{};
  std::size_t i = 0;
  const auto step = [&](WordLanes stored, WordLanes over) {
    left = (stored + nearest(left, over, corner)) & 0xFF;
    corner = over;
    store<kPixel>(left, row + i);
  };
  for (; i + kAtOnce <= bytes; i += kPixel) step(load<kAtOnce>(row + i), load<kAtOnce>(above + i));
  for (; i < bytes; i += kPixel) step(load<kPixel>(row + i), load<kPixel>(above + i));
}

// Applies predict(left, above) to one channel.
template <std::size_t kPixel, typename Predict>
void undo(std::uint8_t* row, const std::uint8_t* above, std::size_t bytes, Predict predict) {
  int left[kPixel] = {};
  for (std::size_t i = 0; i < bytes; i += kPixel)
    for (std::size_t c = 0; c < kPixel; ++c)
      left[c] = row[i + c] = static_cast<std::uint8_t>(row[i + c] + predict(left[c], above[i + c]));
}

template <std::size_t kPixel>
bool unfilter_as(std::uint8_t filter, std::uint8_t* row, const std::uint8_t* above, std::size_t bytes) {
  switch (filter) {
    case kNone:
      return true;
    case kSub:
      undo<kPixel>(row, above, bytes, [](int left, int) { return left; });
      return true;
    case kUp:
      undo<1>(row, above, bytes, [](int, int over) { return over; });
      return true;
    case kAverage:
      undo<kPixel>(row, above, bytes, [](int left, int over) { return (left + over) / 2; });
      return true;
    case kPaeth:
      undo_paeth<kPixel>(row, above, bytes);
      return true;
    default:
      return false;
  }
}

}  // namespace

bool unfilter(std::uint8_t filter, int pixel_bytes, std::uint8_t* row, const std::uint8_t* above, std::size_t bytes) {
  switch (pixel_bytes) {
    case 1:
      return unfilter_as<1>(filter, row, above, bytes);
    case 2:
      return unfilter_as<2>(filter, row, above, bytes);
    case 3:
      return unfilter_as<3>(filter, row, above, bytes);
    case 4:
      return unfilter_as<4>(filter, row, above, bytes);
    case 6:
      return unfilter_as<6>(filter, row, above, bytes);
    case 8:
      return unfilter_as<8>(filter, row, above, bytes);
    default:
      return false;
  }
}

}  // namespace feedline::decode
