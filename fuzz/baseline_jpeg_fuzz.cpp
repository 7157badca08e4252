// SPDX-License-Identifier: Apache-2.0

// Any bytes as a JPEG, decoded with our baseline decoder and with libjpeg alone: the same pixels or the same error,
// with the kernels of every instruction set, and not a byte written beside the pixels. Only where restart intervals
// were passed over may there be pixels instead of an error.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "decode/baseline_kernels.h"
#include "decode/codec.h"
#include "decode/jpeg_decoder.h"
#include "decode/restart_transcoder.h"

namespace {

using feedline::Box;
using feedline::ColorMode;
using feedline::decode::JpegDecoder;
using feedline::memory::PixelBuffer;

constexpr std::int64_t kMaxPixels = 1 << 18;  // larger images only cost time
constexpr std::uint8_t kUntouched = 0xA5;

[[noreturn]] void fail(const char* what, const Box& box) {
  std::fprintf(stderr, "%s at %d, %d of %d x %d\n", what, box.left, box.top, box.width, box.height);
  std::abort();
}

struct Decoded {
  PixelBuffer pixels;
  std::string error;
};

// False where the header is refused.
bool decode(JpegDecoder& decoder, std::span<const std::byte> bytes, const Box& box, ColorMode mode, Decoded& out) {
  if (!decoder.open(bytes)) return false;
  if (!out.pixels.resize(box.width, box.height, feedline::decode::channels_of(mode))) std::abort();
  std::memset(out.pixels.row(0), kUntouched, out.pixels.stride() * static_cast<std::size_t>(box.height));
  const auto result = decoder.decode(box, mode, out.pixels);
  out.error = result ? "" : result.error().what;
  return true;
}

// How libjpeg words what is wrong with a file of several scans may depend on the tables of images before.
bool differs_without_history(std::span<const std::byte> bytes, const Box& box, ColorMode mode) {
  JpegDecoder ours, theirs(nullptr);
  Decoded mine, other;
  return decode(ours, bytes, box, mode, mine) != decode(theirs, bytes, box, mode, other) || mine.error != other.error;
}

void compare(const Decoded& ours, const Decoded& theirs, bool used_baseline, const Box& box) {
  if (ours.error != theirs.error) {
    std::fprintf(stderr, "\"%s\" instead of \"%s\"\n", ours.error.c_str(), theirs.error.c_str());
    fail("another error", box);
  }
  if (!ours.error.empty()) return;
  const auto row_bytes = static_cast<std::size_t>(box.width) * static_cast<std::size_t>(ours.pixels.channels());
  for (int y = 0; y < box.height; ++y) {
    const std::uint8_t* const row = ours.pixels.row(y);
    if (std::memcmp(row, theirs.pixels.row(y), row_bytes) != 0) fail("other pixels", box);
    const auto is_touched = [](std::uint8_t value) { return value != kUntouched; };
    if (used_baseline && std::any_of(row + row_bytes, row + ours.pixels.stride(), is_touched))
      fail("bytes written beside the pixels", box);
  }
}

// A file that libjpeg decodes has the same pixels once it has restart markers.
void compare_with_restarts(JpegDecoder& decoder, std::span<const std::byte> bytes, const Box& whole, int interval,
                           const Decoded& theirs, ColorMode mode) {
  static Decoded marked;
  const auto written = feedline::decode::with_restarts(bytes, interval);
  if (!written || !*written) return;
  if (!decode(decoder, **written, whole, mode, marked)) fail("restart markers that cannot be opened", whole);
  compare(marked, theirs, decoder.used_baseline(), whole);
}

// Boxes that depend on nothing but the bytes, so that a find is found again.
class Boxes {
 public:
  explicit Boxes(std::span<const std::byte> bytes) {
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

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // reused from input to input, as a thread of the engine does
  static JpegDecoder libjpeg(nullptr);
  static std::vector<std::unique_ptr<JpegDecoder>> variants = [] {
    std::vector<std::unique_ptr<JpegDecoder>> all;
    for (const auto* kernels : feedline::decode::baseline::all_kernels())
      all.push_back(std::make_unique<JpegDecoder>(kernels));
    return all;
  }();
  static Decoded ours, theirs;
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto header = libjpeg.open(bytes);
  if (!header || std::int64_t{header->width} * header->height > kMaxPixels) return 0;
  Boxes boxes(bytes);
  const Box whole{0, 0, header->width, header->height};
  const Box tried[] = {whole, boxes.next(header->width, header->height), boxes.next(header->width, header->height)};
  for (const Box& box : tried) {
    const ColorMode mode = boxes.below(4) == 0 ? ColorMode::kL : ColorMode::kRgb;
    if (!decode(libjpeg, bytes, box, mode, theirs)) std::abort();
    if (&box == &tried[0] && theirs.error.empty())
      compare_with_restarts(*variants.front(), bytes, whole, 1 + boxes.below(9), theirs, mode);
    for (const auto& variant : variants) {
      if (!decode(*variant, bytes, box, mode, ours)) std::abort();
      const bool only_words = ours.error != theirs.error && !ours.error.empty() && !theirs.error.empty();
      // damage between markers that were passed over
      if (ours.error.empty() && !theirs.error.empty() && variant->intervals_passed() > 0) continue;
      if (only_words && !differs_without_history(bytes, box, mode)) continue;
      compare(ours, theirs, variant->used_baseline(), box);
    }
  }
  return 0;
}
