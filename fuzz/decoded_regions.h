// SPDX-License-Identifier: Apache-2.0
#pragma once

// Shared by the decoders' fuzzers: regions that depend on the input are decoded twice and compared.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>

#include "decode/codec.h"

namespace feedline::decode {

inline constexpr std::int64_t kMostFuzzedPixels = 1 << 18;  // larger images only take more time
inline constexpr std::uint8_t kUntouched = 0xA5;

[[noreturn]] inline void fail(const char* what, const Box& box) {
  std::fprintf(stderr, "%s at %d, %d of %d x %d\n", what, box.left, box.top, box.width, box.height);
  std::abort();
}

struct Decoded {
  memory::PixelBuffer pixels;
  std::string error;

  void make_room(const Box& box, int channels) {
    if (!pixels.resize(box.width, box.height, channels)) std::abort();
    std::memset(pixels.row(0), kUntouched, pixels.stride() * static_cast<std::size_t>(box.height));
  }
};

// Returns false if the header is rejected.
inline bool decode_region(Codec& decoder, std::span<const std::byte> bytes, const Box& box, ColorMode mode,
                          Decoded& out) {
  if (!decoder.open(bytes)) return false;
  out.make_room(box, channels_of(mode));
  const auto result = decoder.decode(box, mode, out.pixels);
  out.error = result ? "" : result.error().what;
  return true;
}

// by_us: also checks that no byte after a row's pixels was written.
inline void compare(const Decoded& ours, const Decoded& theirs, bool by_us, const Box& box) {
  if (ours.error != theirs.error) {
    std::fprintf(stderr, "\"%s\" instead of \"%s\"\n", ours.error.c_str(), theirs.error.c_str());
    fail("the errors differ", box);
  }
  if (!ours.error.empty()) return;
  const auto row_bytes = static_cast<std::size_t>(box.width) * static_cast<std::size_t>(ours.pixels.channels());
  for (int y = 0; y < box.height; ++y) {
    const std::uint8_t* const row = ours.pixels.row(y);
    if (std::memcmp(row, theirs.pixels.row(y), row_bytes) != 0) fail("the pixels differ", box);
    const auto is_touched = [](std::uint8_t value) { return value != kUntouched; };
    if (by_us && std::any_of(row + row_bytes, row + ours.pixels.stride(), is_touched))
      fail("bytes were written after the pixels", box);
  }
}

// Boxes that depend only on the bytes, so that failures are reproducible.
class DrawnBoxes {
 public:
  explicit DrawnBoxes(std::span<const std::byte> bytes) {
    for (const std::byte byte : bytes) mix(static_cast<std::uint32_t>(byte));
  }
  Box next(int width, int height) {
    const int w = 1 + below(width), h = 1 + below(height);
    return {below(width - w + 1), below(height - h + 1), w, h};
  }
  int below(int bound) {
    mix(0);
    return static_cast<int>((state_ >> 8) % static_cast<std::uint32_t>(bound));
  }

 private:
  void mix(std::uint32_t value) { state_ = (state_ ^ value) * 16777619u + 40503u; }
  std::uint32_t state_ = 2166136261u;
};

}  // namespace feedline::decode
