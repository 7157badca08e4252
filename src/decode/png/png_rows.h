// SPDX-License-Identifier: Apache-2.0
#pragma once

// All rows of a PNG, inflated in one go by libdeflate, without their filters. What is doubtful about a file is
// libspng's to say: so this gives up, and the image is decoded by it from its start.
// docs/decisions/decode-png-and-other-images.md gives the reasons.

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

// A thread keeps one: memory is reused. Not for several threads at once.
class PngRows {
 public:
  PngRows();
  ~PngRows();

  // False where the data is not exactly that of the image's rows, its checksum is wrong, or it is more than is held at
  // once. Requires: nothing was read from `stream`, whose file stays where it is until end().
  [[nodiscard]] bool start(const PngStream& stream, const PngHeader& header);
  // The rows of one pass come next. Passes without pixels have none.
  void start_pass(const PngPass& pass);
  // The next row as it was before filtering, until end(); nullptr: by a filter that does not exist.
  // Requires: there is one.
  const std::uint8_t* next();
  // Does a filter exist that the row behind says it has? libspng looks at it with the row before. True behind the last.
  bool is_next_whole() const;
  // The image's memory is the next one's, up to kMostKept.
  void end();

 private:
  // Of RGB up to 22 million pixels. Larger ones come row by row from libspng, so that no image takes a thread more.
  static constexpr std::uint64_t kMostBytes = 64 << 20;
  static constexpr std::size_t kMostKept = 8 << 20;  // as much as JPEGs' coefficients (jpeg_memory.h)

  struct Release {
    void operator()(libdeflate_decompressor* inflater) const;
  };
  std::unique_ptr<libdeflate_decompressor, Release> inflater_;  // made for the first PNG: many folders have none
  PngHeader header_;
  memory::ByteBuffer data_;           // of several IDATs, joined
  memory::ByteBuffer rows_, no_row_;  // a byte in front of each row is its filter; what is above a first one
  int pixel_bytes_ = 1;
  std::size_t row_bytes_ = 0;  // of the pass
  std::uint8_t *next_ = nullptr, *end_ = nullptr;
  const std::uint8_t* above_ = nullptr;
};

}  // namespace feedline::decode
