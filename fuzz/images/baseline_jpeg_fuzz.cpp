// SPDX-License-Identifier: Apache-2.0

// Any bytes as a JPEG, decoded with our baseline and progressive decoders and with only libjpeg: the same pixels or the
// same error, with the kernels of every instruction set, and no byte written outside the pixels. The result is also the
// same if the image is decoded alternately with another region of it or with a healthy photo, whose pixels do not
// change. Only if restart intervals were skipped may there be pixels instead of an error. Planes (fidelity "fast") of
// every coarseness are only returned if libjpeg finds no error or intervals were skipped; their samples are the same
// with every instruction set.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "decode/codec.h"
#include "decode/jpeg/baseline/baseline_kernels.h"
#include "decode/jpeg/baseline/planes_fixture.h"
#include "decode/jpeg/jpeg_decoder.h"
#include "decode/jpeg/restart_transcoder.h"
#include "decoded_regions.h"

namespace {

using feedline::Box;
using feedline::ColorMode;
using feedline::decode::compare;
using feedline::decode::Decoded;
using feedline::decode::DrawnBoxes;
using feedline::decode::fail;
using feedline::decode::JpegDecoder;
using feedline::decode::kMostFuzzedPixels;
using feedline::memory::Coarseness;
using feedline::memory::Planes;

// For files with several scans, libjpeg's error message may depend on the tables of previous images.
bool differs_without_history(std::span<const std::byte> bytes, const Box& box, ColorMode mode) {
  JpegDecoder ours, theirs(nullptr);
  Decoded mine, other;
  return decode_region(ours, bytes, box, mode, mine) != decode_region(theirs, bytes, box, mode, other) ||
         mine.error != other.error;
}

bool is_by_us(const JpegDecoder& decoder) { return decoder.used_baseline() || decoder.used_progressive(); }

void compare(Planes& planes, Planes& expected, const Box& box) {
  if (planes.count != expected.count) fail("the numbers of planes differ", box);
  for (int c = 0; c < planes.count; ++c) {
    auto &plane = planes.plane[c], &other = expected.plane[c];
    if (!(plane.x == other.x && plane.y == other.y)) fail("another plane", box);
    const Box needed = feedline::decode::samples_of(plane, box);
    if (!feedline::decode::lies_inside(needed, plane.samples)) fail("a plane is too small", box);
    for (int y = needed.top; y < needed.top + needed.height; ++y)
      if (std::memcmp(plane.samples.row(y) + needed.left, other.samples.row(y) + needed.left,
                      static_cast<std::size_t>(needed.width)) != 0)
        fail("other samples", box);
  }
}

// A file that libjpeg decodes has the same pixels after restart markers are added.
void compare_with_restarts(JpegDecoder& decoder, std::span<const std::byte> bytes, const Box& whole, int interval,
                           const Decoded& theirs, ColorMode mode) {
  static Decoded marked;
  const auto written = feedline::decode::with_restarts(bytes, interval);
  if (!written || !*written) return;
  if (!decode_region(decoder, **written, whole, mode, marked))
    fail("the file with restart markers cannot be opened", whole);
  compare(marked, theirs, is_by_us(decoder), whole);
}

using Variants = std::vector<std::unique_ptr<JpegDecoder>>;

void check_planes(const Variants& variants, std::span<const std::byte> bytes, const Box& box, ColorMode mode,
                  const Coarseness& most, bool healthy) {
  static Planes planes, expected;
  JpegDecoder& plain = *variants.back();
  if (!plain.open(bytes)) std::abort();
  const bool has_planes = plain.decode_planes(box, mode, most, expected);
  if (has_planes && !healthy && plain.intervals_passed() == 0) fail("planes from a damaged file", box);
  for (const auto& variant : variants) {
    if (variant == variants.back()) break;
    if (!variant->open(bytes)) std::abort();
    if (variant->decode_planes(box, mode, most, planes) != has_planes) fail("planes with only one variant", box);
    if (has_planes) compare(planes, expected, box);
  }
}

// Two decoders that decode two images alternately, and the expected pixels of the healthy image.
struct Turns {
  explicit Turns(const feedline::decode::baseline::Kernels* kernels) : first(kernels), second(kernels) {
    std::ifstream file(FEEDLINE_SOURCE_DIR "/fuzz/corpus/baseline_jpeg/420_q90.jpg", std::ios::binary);
    const std::string text(std::istreambuf_iterator<char>(file), {});
    const auto bytes_of_text = std::as_bytes(std::span(text));
    healthy.assign(bytes_of_text.begin(), bytes_of_text.end());
    const auto header = first.open(healthy);
    if (!header) std::abort();
    healthy_box = {1, 2, header->width - 3, header->height - 4};
    if (!decode_region(first, healthy, healthy_box, ColorMode::kRgb, expected) || !expected.error.empty()) std::abort();
  }
  JpegDecoder first, second;
  std::vector<std::byte> healthy;
  Box healthy_box;
  Decoded expected, first_out, second_out;
};

struct Asked {
  std::span<const std::byte> bytes;
  Box box;
  ColorMode mode;
};

void decode_in_turn(Turns& turns, const Asked& a, const Asked& b) {
  const auto make_ready = [](JpegDecoder& decoder, const Asked& asked, Decoded& out) {
    if (!decoder.open(asked.bytes)) std::abort();
    out.make_room(asked.box, feedline::decode::channels_of(asked.mode));
  };
  make_ready(turns.first, a, turns.first_out);
  make_ready(turns.second, b, turns.second_out);
  const auto results = JpegDecoder::decode_in_turn(turns.first, {a.box, a.mode, &turns.first_out.pixels}, turns.second,
                                                   {b.box, b.mode, &turns.second_out.pixels});
  turns.first_out.error = results[0] ? "" : results[0].error().what;
  turns.second_out.error = results[1] ? "" : results[1].error().what;
}

// `theirs` is libjpeg's result for this region.
void check_turns(Turns& turns, const Asked& asked, const Decoded& theirs, const Box& other_box) {
  const Asked healthy{turns.healthy, turns.healthy_box, ColorMode::kRgb};
  const auto expect = [&](const Decoded& got, JpegDecoder& by) {
    if (got.error.empty() && !theirs.error.empty() && by.intervals_passed() > 0) return;
    if (got.error != theirs.error && !got.error.empty() && !theirs.error.empty())
      return;  // the messages are compared without alternation
    compare(got, theirs, is_by_us(by), asked.box);
  };
  decode_in_turn(turns, asked, healthy);
  expect(turns.first_out, turns.first);
  compare(turns.second_out, turns.expected, is_by_us(turns.second), turns.healthy_box);
  decode_in_turn(turns, healthy, asked);
  expect(turns.second_out, turns.second);
  compare(turns.first_out, turns.expected, is_by_us(turns.first), turns.healthy_box);
  decode_in_turn(turns, asked, {asked.bytes, other_box, asked.mode});
  expect(turns.first_out, turns.first);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // reused for all inputs, as in a thread of the engine
  static JpegDecoder libjpeg(nullptr);
  static Variants variants = [] {
    Variants all;
    for (const auto* kernels : feedline::decode::baseline::all_kernels())
      all.push_back(std::make_unique<JpegDecoder>(kernels));
    return all;
  }();
  static std::vector<std::unique_ptr<Turns>> all_turns = [] {
    std::vector<std::unique_ptr<Turns>> all;
    for (const auto* kernels : feedline::decode::baseline::all_kernels())
      all.push_back(std::make_unique<Turns>(kernels));
    return all;
  }();
  static Decoded ours, theirs;
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto header = libjpeg.open(bytes);
  if (!header || std::int64_t{header->width} * header->height > kMostFuzzedPixels) return 0;
  DrawnBoxes boxes(bytes);
  const Box whole{0, 0, header->width, header->height};
  const Box tried[] = {whole, boxes.next(header->width, header->height), boxes.next(header->width, header->height)};
  for (const Box& box : tried) {
    const ColorMode mode = boxes.below(4) == 0 ? ColorMode::kL : ColorMode::kRgb;
    if (!decode_region(libjpeg, bytes, box, mode, theirs)) std::abort();
    if (&box == &tried[0] && theirs.error.empty())
      compare_with_restarts(*variants.front(), bytes, whole, 1 + boxes.below(9), theirs, mode);
    for (const auto& variant : variants) {
      if (!decode_region(*variant, bytes, box, mode, ours)) std::abort();
      const bool only_words = ours.error != theirs.error && !ours.error.empty() && !theirs.error.empty();
      // the damage is in skipped intervals
      if (ours.error.empty() && !theirs.error.empty() && variant->intervals_passed() > 0) continue;
      if (only_words && !differs_without_history(bytes, box, mode)) continue;
      compare(ours, theirs, is_by_us(*variant), box);
    }
    for (const auto& turns : all_turns)
      check_turns(*turns, {bytes, box, mode}, theirs, boxes.next(header->width, header->height));
    check_planes(variants, bytes, box, mode, {1 << boxes.below(5), 1 << boxes.below(5)}, theirs.error.empty());
  }
  return 0;
}
