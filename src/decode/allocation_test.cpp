// SPDX-License-Identifier: Apache-2.0

// A file header alone must not cause large allocations: this test counts the codecs' malloc calls. Sanitizers replace
// malloc, so under a sanitizer the test checks only the errors.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "decode/decoder.h"
#include "decode/jpeg/jpeg_fixture.h"
#include "decode/png/png_kinds_fixture.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define FEEDLINE_WATCH_MALLOC 0
#else
#define FEEDLINE_WATCH_MALLOC 1
#endif

namespace {
std::atomic<std::size_t> largest_allocation{0};
std::atomic<std::size_t> allocations{0};

[[maybe_unused]] void note(std::size_t bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (bytes > largest_allocation.load(std::memory_order_relaxed))
    largest_allocation.store(bytes, std::memory_order_relaxed);
}
}  // namespace

#if FEEDLINE_WATCH_MALLOC
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);

__attribute__((visibility("default"))) void* malloc(std::size_t bytes) noexcept {
  note(bytes);
  return __libc_malloc(bytes);
}
__attribute__((visibility("default"))) void* calloc(std::size_t count, std::size_t bytes) noexcept {
  note(count * bytes);
  return __libc_calloc(count, bytes);
}
__attribute__((visibility("default"))) void* aligned_alloc(std::size_t alignment, std::size_t bytes) noexcept {
  note(bytes);
  return __libc_memalign(alignment, bytes);
}
}
#endif

namespace feedline::decode {
namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr std::size_t kSmall = 1 << 20;  // fixed codec overhead, independent of the image: zlib's window, libjpeg's
                                         // pools

Bytes joined(std::initializer_list<Bytes> parts) {
  Bytes all;
  for (const Bytes& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

Bytes jpeg(int width, int height, std::uint8_t frame_marker) {
  const auto high = [](int v) { return static_cast<std::uint8_t>(v >> 8); };
  const auto low = [](int v) { return static_cast<std::uint8_t>(v); };
  Bytes quantisation{0xFF, 0xDB, 0, 67, 0};
  quantisation.resize(2 + 67, 1);
  const Bytes frame{
      0xFF, frame_marker, 0, 17, 8, high(height), low(height), high(width), low(width), 3, 1, 0x11, 0, 2, 0x11, 0,
      3,    0x11,         0};
  const Bytes huffman{0xFF, 0xC4, 0, 20, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
  const bool progressive = frame_marker == 0xC2;
  const Bytes scan{0xFF, 0xDA, 0,   12, 3, 1, 0, 2, 0, 3, 0, 0, static_cast<std::uint8_t>(progressive ? 0 : 63),
                   0,    0x55, 0xAA};
  return joined({{0xFF, 0xD8}, quantisation, frame, huffman, scan});
}

Bytes png(bool large) {  // 60,000 or 13,000 on a side, with the checksum that belongs to it
  Bytes bytes{0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n', 0, 0, 0, 13, 'I', 'H', 'D', 'R'};
  const Bytes big{0, 0, 0xEA, 0x60, 0, 0, 0xEA, 0x60, 8, 2, 0, 0, 1, 0x78, 0xB7, 0xD2, 0x83};
  const Bytes medium{0, 0, 0x32, 0xC8, 0, 0, 0x32, 0xC8, 8, 2, 0, 0, 1, 0x1A, 0xC7, 0x4F, 0xF9};
  return joined({bytes, large ? big : medium, {0x7F, 0xFF, 0xFF, 0xFF, 'I', 'D', 'A', 'T', 0x78, 0x9C, 0}});
}

Bytes webp(std::uint32_t width, std::uint32_t height) {
  const std::uint32_t size = (width - 1) | (height - 1) << 14;
  Bytes bytes{'R', 'I', 'F', 'F', 0, 16, 0, 0, 'W', 'E', 'B', 'P', 'V', 'P', '8', 'L', 0, 15, 0, 0, 0x2F};
  for (int i = 0; i < 4; ++i) bytes.push_back(static_cast<std::uint8_t>(size >> (8 * i)));
  return bytes;
}

struct Outcome {
  std::string error;
  std::size_t largest = 0;
};

Outcome outcome(const Bytes& bytes, bool decode) {
  ImageDecoder decoder;
  memory::PixelBuffer out;
  largest_allocation = 0;
  const auto header = decoder.open(std::as_bytes(std::span(bytes)));
  if (!header) return {header.error().what, largest_allocation};
  if (!decode) return {"", largest_allocation};
  const auto decoded = decoder.decode({0, 0, 4, 4}, ColorMode::kRgb, out);
  return {decoded ? "" : decoded.error().what, largest_allocation};
}

TEST(Allocation, TheWatchWorks) {
  largest_allocation = 0;
  const std::vector<char> block(5 << 20);
  if (FEEDLINE_WATCH_MALLOC) {
    EXPECT_GE(largest_allocation, block.size());
  }
}

TEST(Allocation, AJpegTakesNoMemoryOnceOneLikeItWasDecoded) {
  ImageDecoder decoder;
  memory::PixelBuffer out;
  std::vector<EncodedBytes> files;
  for (const auto& [h, v] : {std::pair{2, 2}, {2, 1}, {1, 1}})
    for (const auto& [optimised, progressive] : {std::pair{false, false}, {true, false}, {true, true}})
      files.push_back(
          encode({.width = 300, .height = 200, .h = h, .v = v, .progressive = progressive, .optimised = optimised}));
  for (int round = 0; round < 2; ++round)
    for (const EncodedBytes& file : files) {
      ASSERT_TRUE(decoder.open(file));
      allocations = 0;
      ASSERT_TRUE(decoder.decode({20, 30, 250, 150}, ColorMode::kRgb, out));
      if (round > 0) {
        EXPECT_EQ(allocations.load(), 0u);
      }
    }
}

// An image of a single colour compresses many rows into few bytes; if whole images were stored, 16 threads would need a
// gigabyte.
TEST(Allocation, APngOfOver64MiBComesRowByRow) {
  constexpr std::size_t kSide = 4800, kRow = 1 + 3 * kSide;
  Bytes rows(kRow * kSide), deflated(rows.size() / 100);
  uLongf size = deflated.size();
  ASSERT_EQ(compress2(deflated.data(), &size, rows.data(), rows.size(), 1), Z_OK);
  EncodedBytes file = encode_png(PngKind{});
  file.resize(33);
  set_big_endian(file, 16, kSide);
  set_big_endian(file, 20, kSide);
  seal(file, 8, 13);
  add_chunk(file, "IDAT", std::as_bytes(std::span(deflated).first(size)));
  add_chunk(file, "IEND", {});
  ImageDecoder decoder;
  memory::PixelBuffer out;
  ASSERT_TRUE(decoder.open(file));
  largest_allocation = 0;
  ASSERT_TRUE(decoder.decode({0, 0, 20, 3}, ColorMode::kRgb, out));
  EXPECT_LT(largest_allocation, kSmall);
}

TEST(Allocation, APngTakesNoMemoryOnceOneLikeItWasDecoded) {
  const std::vector<std::uint8_t> white(std::size_t{300} * 200 * 3, 255);
  const std::vector<std::byte> file = made_png(300, 200, SPNG_COLOR_TYPE_TRUECOLOR, white);
  ImageDecoder decoder;
  memory::PixelBuffer out;
  for (int round = 0; round < 2; ++round) {
    ASSERT_TRUE(decoder.open(file));
    allocations = 0;
    ASSERT_TRUE(decoder.decode({20, 30, 250, 150}, ColorMode::kRgb, out));
    if (round > 0) {
      EXPECT_EQ(allocations.load(), 0u);
    }
  }
}

TEST(Allocation, AbsurdSizesAreRefusedWhenOpened) {
  const Bytes files[] = {jpeg(60'000, 60'000, 0xC0), jpeg(60'000, 60'000, 0xC2), png(true), webp(16'383, 16'383)};
  for (const Bytes& bytes : files) {
    const auto [error, largest] = outcome(bytes, true);
    const std::string size = bytes[0] == 'R' ? "16383 x 16383" : "60000 x 60000";
    EXPECT_EQ(error, "image of " + size + " pixels is over the limit of 178956970 pixels");
    EXPECT_LT(largest, kSmall);
  }
}

TEST(Allocation, OpeningALargeImageTakesNoMemory) {
  for (const Bytes& bytes :
       {jpeg(13'000, 13'000, 0xC0), jpeg(13'000, 13'000, 0xC2), png(false), webp(13'000, 13'000)}) {
    const auto [error, largest] = outcome(bytes, false);
    EXPECT_EQ(error, "");
    EXPECT_LT(largest, kSmall);
  }
}

TEST(Allocation, AHeaderAloneDecodesToAnErrorWithoutTheImagesMemory) {
  for (const Bytes& bytes :
       {jpeg(13'000, 13'000, 0xC0), jpeg(13'000, 13'000, 0xC2), png(false), webp(13'000, 13'000)}) {
    const auto [error, largest] = outcome(bytes, true);
    EXPECT_TRUE(error.starts_with("truncated ")) << error;
    EXPECT_LT(largest, kSmall);
  }
}

}  // namespace
}  // namespace feedline::decode
