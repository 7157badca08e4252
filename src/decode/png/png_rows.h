// SPDX-License-Identifier: Apache-2.0
#pragma once

// Inflates all rows of a PNG at once with libdeflate and reverses their filters. Fails for any doubtful file; libspng
// then decodes the file from the beginning and reports errors (docs/decisions/decode-png-and-other-images.md).

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "decode/png/png_stream.h"
#include "memory/record.h"

struct libdeflate_decompressor;

namespace feedline::decode {

// A pass of Adam7 interlacing: one of seven smaller images, each of which consists of the pixels on a regular grid. An
// image without interlacing has one pass.
struct PngPass {
  int x = 0, y = 0, dx = 1, dy = 1;

  int columns(const PngHeader& header) const { return (static_cast<int>(header.width) - x + dx - 1) / dx; }
  int rows(const PngHeader& header) const { return (static_cast<int>(header.height) - y + dy - 1) / dy; }
};
inline constexpr std::array<PngPass, 7> kAdam7{
    {{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4}, {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}}};

// Not thread-safe. Each thread should use one object for all images, because the object reuses its memory.
class PngRows {
 public:
  PngRows();
  ~PngRows();

  // Returns false if the data does not have the size of the image's rows, has a wrong checksum, or exceeds the memory
  // limit. Requires: nothing has been read from `stream`, and its file stays valid until end() is called.
  [[nodiscard]] bool start(const PngStream& stream, const PngHeader& header);
  // Begins the next pass. Passes without pixels have no rows.
  void start_pass(const PngPass& pass);
  // Returns the next unfiltered row, valid until end(); nullptr if its filter number is invalid. Requires: a next row
  // exists.
  const std::uint8_t* next();
  // Returns whether the next row has a valid filter number, which libspng also checks one row ahead. Returns true after
  // the last row.
  bool is_next_whole() const;
  // Retains up to kMaxRetained bytes of the image's memory for the next image.
  void end();

 private:
  // Enough for RGB images of up to 22 million pixels. libspng decodes larger images row by row, which limits the memory
  // per thread.
  static constexpr std::uint64_t kMostBytes = 64 << 20;
  static constexpr std::size_t kMaxRetained = 8 << 20;  // the same as for coefficients of JPEGs (jpeg_memory.h)

  struct Release {
    void operator()(libdeflate_decompressor* inflater) const;
  };
  std::unique_ptr<libdeflate_decompressor, Release> inflater_;  // created for the first PNG: many datasets have none
  PngHeader header_;
  memory::ByteBuffer data_;           // several IDATs joined
  memory::ByteBuffer rows_, no_row_;  // each row is preceded by its filter byte; zeros above the first row
  int pixel_bytes_ = 1;
  std::size_t row_bytes_ = 0;  // of the pass
  std::uint8_t *next_ = nullptr, *end_ = nullptr;
  const std::uint8_t* above_ = nullptr;
};

}  // namespace feedline::decode
