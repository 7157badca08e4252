// SPDX-License-Identifier: Apache-2.0
#pragma once

// Extracts the header data that the baseline decoder needs, and checks whether the decoder supports the JPEG.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <span>

#include <jpeglib.h>

#include "decode/jpeg/baseline/baseline_huffman.h"
#include "decode/jpeg/baseline/baseline_kernels.h"

namespace feedline::decode::baseline {

struct Component {
  int across = 1, down = 1;  // blocks in an MCU
  std::array<std::uint16_t, kBlockSize> quantisation{};
  HuffmanSpec dc, ac;
};

struct Frame {
  int width = 0, height = 0;
  int components = 1;  // 1: grey; 3: Y, Cb, Cr, with one block per MCU for Cb and Cr
  std::array<Component, kMaxComponents> component;
  int restart_interval = 0;         // MCUs between restart markers; 0: none
  std::span<const std::byte> scan;  // the data after the scan's header

  int mcu_width() const { return kBlockSide * component[0].across; }
  int mcu_height() const { return kBlockSide * component[0].down; }
  int mcus_across() const { return (width + mcu_width() - 1) / mcu_width(); }
  int mcus_down() const { return (height + mcu_height() - 1) / mcu_height(); }
  // Returns the size of the image's chroma samples, without the padding of its last MCUs.
  int chroma_width() const { return (width + component[0].across - 1) / component[0].across; }
  int chroma_height() const { return (height + component[0].down - 1) / component[0].down; }
};

// Requires: the header of a whole image was just read by jpeg_read_header() from the memory source of `jpeg`. Returns
// nullopt if libjpeg must decode the image: all images except single-scan 8-bit baseline in grey, 4:4:4, 4:2:2 or
// 4:2:0.
std::optional<Frame> baseline_frame(const jpeg_decompress_struct& jpeg);
// Like baseline_frame(), but for a progressive image. Each scan defines its own tables, so the frame's components have
// none, and `scan` has the data of the first scan. Returns nullopt if the layout or coding is not supported.
std::optional<Frame> progressive_frame(const jpeg_decompress_struct& jpeg);

}  // namespace feedline::decode::baseline
