// SPDX-License-Identifier: Apache-2.0
#pragma once

// The chunks of a PNG that determine its pixels: IHDR, PLTE and the sequence of IDATs. All other chunks (text,
// profiles, gamma, transparency, animation) are skipped, so they cause neither errors nor costs.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "feedline/error.h"
#include "memory/record.h"

namespace feedline::decode {

enum class PngColor : std::uint8_t { kGray = 0, kRgb = 2, kPalette = 3, kGrayAlpha = 4, kRgba = 6 };

struct PngHeader {
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  int depth = 0;  // bits per sample
  PngColor color = PngColor::kGray;
  bool interlaced = false;

  int channels() const;
  std::uint64_t bytes_of(std::uint64_t pixels) const;  // of one row
};

// Reads the signature and IHDR.
Result<PngHeader> read_png_header(std::span<const std::byte> bytes);

class PngStream {
 public:
  // Reads the chunks of a file with the header `header`. kData: a critical chunk is missing or damaged (checksums are
  // verified here).
  Result<void> open(std::span<const std::byte> bytes, const PngHeader& header);

  std::span<const std::byte> palette() const { return palette_; }  // red, green, blue, ...; empty without PLTE
  std::uint64_t compressed_bytes() const { return compressed_bytes_; }
  bool complete() const { return complete_; }  // ends with IEND, so it is not truncated
  // Returns the contents of the IDATs, concatenated in `room` if there are several. Returns nullopt if an IDAT is
  // truncated or memory runs out. Requires: read() has not been called.
  std::optional<std::span<const std::byte>> data(memory::ByteBuffer& room) const;

  // Reads the next bytes of a minimal PNG with the same image data: IHDR, then the IDATs. Returns false at the end of
  // that PNG.
  bool read(std::span<std::byte> out);

 private:
  void compose(std::span<const std::byte> bytes, const PngHeader& header, std::span<const std::byte> run,
               std::span<const std::byte> cut_data);

  static constexpr std::size_t kHeadBytes = 8 + 25;  // signature and IHDR chunk
  std::array<std::byte, kHeadBytes> head_{};
  std::array<std::byte, 8> cut_head_{};  // of a truncated IDAT, with the available length
  std::array<std::span<const std::byte>, 4> pieces_;
  std::size_t piece_ = 0;
  std::span<const std::byte> palette_;
  std::uint64_t compressed_bytes_ = 0;
  bool complete_ = false;
};

}  // namespace feedline::decode
