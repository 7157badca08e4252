// SPDX-License-Identifier: Apache-2.0
#pragma once

// Inflates all rows of a PNG at once with libdeflate and reverses their filters. It gives up on any doubtful file,
// which libspng then decodes from its start and reports on (docs/decisions/decode-png-and-other-images.md).

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "decode/png/png_stream.h"
#include "memory/record.h"

struct libdeflate_decompressor;

namespace feedline::decode {

// Adam7: seven smaller images, each a grid of the whole. An image that is not interlaced is one pass.
struct PngPass {
  int x = 0, y = 0, dx = 1, dy = 1;

  int columns(const PngHeader& header) const { return (static_cast<int>(header.width) - x + dx - 1) / dx; }
  int rows(const PngHeader& header) const { return (static_cast<int>(header.height) - y + dy - 1) / dy; }
};
inline constexpr std::array<PngPass, 7> kAdam7{
    {{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4}, {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}}};

// Not thread-safe. Each thread should reuse one, which reuses memory.
class PngRows {
 public:
  PngRows();
  ~PngRows();

  // Returns false if the data does not have exactly the size of the image's rows, its checksum is wrong, or it exceeds
  // the memory limit. Requires: nothing has been read from `stream`, and its file stays valid until end().
  [[nodiscard]] bool start(const PngStream& stream, const PngHeader& header);
  // Begins the next pass. Passes without pixels have no rows.
  void start_pass(const PngPass& pass);
  // Returns the next row unfiltered, valid until end(); nullptr if its filter does not exist. Requires: there is a next
  // row.
  const std::uint8_t* next();
  // Returns whether the next row has a valid filter number, which libspng checks one row ahead. True after the last
  // row.
  bool is_next_whole() const;
  // Retains the image's memory for the next one, up to kMostKept.
  void end();

 private:
  // Enough for RGB up to 22 million pixels. libspng decodes larger images row by row, which bounds the memory per
  // thread.
  static constexpr std::uint64_t kMostBytes = 64 << 20;
  static constexpr std::size_t kMostKept = 8 << 20;  // the same as for coefficients of JPEGs (jpeg_memory.h)

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
