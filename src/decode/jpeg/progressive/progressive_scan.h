// SPDX-License-Identifier: Apache-2.0
#pragma once

// The scans of a progressive JPEG: what stands between them, and whether it is what libjpeg takes without a word.

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
  std::array<int, kMaxScanComponents> table{};      // Huffman tables: DC ones where first is 0, else AC
  unsigned first = 0, last = 0;                     // coefficients in zigzag order
  int high = 0, low = 0;            // 0: no bits came before; else the one that came last; and now comes
  int restart_interval = 0;         // MCUs; 0: none
  std::span<const std::byte> data;  // what follows the scan's header

  bool is_dc() const { return first == 0; }
  bool refines() const { return high > 0; }
};

// A file whose header libjpeg has read.
class ScanReader {
 public:
  // Requires: jpeg_read_header() has just read the header of a whole image from `jpeg`'s memory source.
  // Nothing for what libjpeg must decode: all but 8-bit progressive of the layouts that the baseline decoder takes.
  static std::optional<ScanReader> of(const jpeg_decompress_struct& jpeg);

  const Frame& frame() const { return frame_; }
  // The last that was read.
  const Scan& scan() const { return scan_; }
  // Its table number; null where the file has none.
  const HuffmanSpec* table(int number) const;

  // Is scan() in its place: does it bring bits that come next for its coefficients? Counts them as there.
  [[nodiscard]] bool accept();
  // Are all bits of all coefficients there?
  bool is_complete() const;

  enum class Next : std::uint8_t { kScan, kEnd, kDoubtful };
  // `ahead`: what follows scan()'s data, a marker.
  Next read_next(std::span<const std::uint8_t> ahead);

 private:
  using Specs = std::array<std::optional<HuffmanSpec>, NUM_HUFF_TBLS>;
  using Segment = std::span<const std::uint8_t>;

  bool read_first(const jpeg_decompress_struct& jpeg);
  bool read_tables(Segment segment);
  bool read_scan(Segment segment, Segment behind);

  Frame frame_;
  Scan scan_;
  int scans_ = 1;
  int restart_interval_ = 0;
  std::array<int, kMaxComponents> ids_{};
  std::array<Specs, 2> tables_;                                                          // DC, AC
  std::array<std::array<std::int8_t, baseline::kBlockSize>, kMaxComponents> bits_left_;  // -1: none came
};

}  // namespace feedline::decode::progressive
