// SPDX-License-Identifier: Apache-2.0
#pragma once

// Parses the scans of a progressive JPEG and the segments between them, and checks that libjpeg accepts them without a
// warning.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <span>

#include <jpeglib.h>

#include "decode/jpeg/baseline/baseline_frame.h"
#include "decode/jpeg/progressive/progressive_runs.h"

namespace feedline::decode::progressive {

using baseline::Frame;
using baseline::HuffmanSpec;
using baseline::kMaxComponents;

struct Scan {
  int components = 0;
  std::array<int, kMaxScanComponents> component{};  // their numbers in the frame
  std::array<int, kMaxScanComponents> table{};      // Huffman tables: DC if first is 0, else AC
  unsigned first = 0, last = 0;                     // coefficients in zigzag order
  int high = 0, low = 0;            // 0: first scan of these bits; otherwise the previous bit position; then the
                                    // current one
  int restart_interval = 0;         // MCUs; 0: none
  std::span<const std::byte> data;  // the data after the scan's header

  bool is_dc() const { return first == 0; }
  bool refines() const { return high > 0; }
};

// Reads the scans of a file after libjpeg has read its header.
class ScanReader {
 public:
  // Requires: jpeg_read_header() has just read the header of a whole image from `jpeg`'s memory source. Returns nullopt
  // if libjpeg must decode the image: all images except 8-bit progressive in the layouts that the baseline decoder
  // supports.
  static std::optional<ScanReader> of(const jpeg_decompress_struct& jpeg);

  const Frame& frame() const { return frame_; }
  // Returns the last scan that was read.
  const Scan& scan() const { return scan_; }
  // Returns the Huffman table with this number, or nullptr if the file does not have it.
  const HuffmanSpec* table(int number) const;

  // Returns whether scan() has the next bits of its coefficients; if so, records them as present.
  [[nodiscard]] bool accept();
  // Returns whether all bits of all coefficients are present.
  bool is_complete() const;

  enum class Next : std::uint8_t { kScan, kEnd, kDoubtful };
  // `ahead`: the data that follows the data of scan(), starting with a marker.
  Next read_next(std::span<const std::uint8_t> ahead);

 private:
  using Specs = std::array<std::optional<HuffmanSpec>, NUM_HUFF_TBLS>;
  using Segment = std::span<const std::uint8_t>;

  bool read_first(const jpeg_decompress_struct& jpeg);
  bool read_tables(Segment segment);
  bool read_scan(Segment segment, Segment following);

  Frame frame_;
  Scan scan_;
  int scans_ = 1;
  int restart_interval_ = 0;
  std::array<int, kMaxComponents> ids_{};
  std::array<Specs, 2> tables_;                                                          // DC, AC
  std::array<std::array<std::int8_t, baseline::kBlockSize>, kMaxComponents> bits_left_;  // -1: none yet
};

}  // namespace feedline::decode::progressive
