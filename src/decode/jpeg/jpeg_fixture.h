// SPDX-License-Identifier: Apache-2.0
#pragma once

// JPEGs of every kind that libjpeg encodes from a synthetic photo.

#include <cstdio>

#include <jpeglib.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "decode/decoder_contract.h"

namespace feedline::decode {

struct JpegKind {
  std::string name;
  int width = 61, height = 47;
  int channels = 3;  // 1 grey, 3 colour, 4 CMYK
  int h = 2, v = 2;  // sampling factors of the first component; the others have 1 x 1
  J_COLOR_SPACE stored = JCS_YCbCr;
  bool progressive = false, arithmetic = false, interleaved = true;
  int restart = 0;  // MCUs between restart markers
  int quality = 90;
  bool optimised = false;               // Huffman tables optimised for the image
  bool tables = true;                   // false: as in motion JPEG, without Huffman tables
  std::vector<jpeg_scan_info> scans{};  // progressive images with custom scans
};

// Returns the bytes written to `memory`, the buffer that was passed to jpeg_mem_dest().
inline EncodedBytes finished(jpeg_compress_struct& jpeg, unsigned char*& memory, const unsigned long& size) {
  jpeg_finish_compress(&jpeg);
  jpeg_destroy_compress(&jpeg);
  const auto* first = reinterpret_cast<const std::byte*>(memory);
  EncodedBytes bytes(first, first + size);
  std::free(memory);
  return bytes;
}

inline EncodedBytes encode(const JpegKind& kind) {
  jpeg_compress_struct jpeg;
  jpeg_error_mgr errors;
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_compress(&jpeg);
  unsigned char* memory = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&jpeg, &memory, &size);
  jpeg.image_width = static_cast<JDIMENSION>(kind.width);
  jpeg.image_height = static_cast<JDIMENSION>(kind.height);
  jpeg.input_components = kind.channels;
  jpeg.in_color_space = kind.channels == 1 ? JCS_GRAYSCALE : kind.channels == 3 ? JCS_RGB : JCS_CMYK;
  jpeg_set_defaults(&jpeg);
  jpeg_set_colorspace(&jpeg, kind.channels == 1 ? JCS_GRAYSCALE : kind.stored);
  jpeg_set_quality(&jpeg, kind.quality, TRUE);
  for (int c = 0; c < jpeg.num_components; ++c) jpeg.comp_info[c].h_samp_factor = jpeg.comp_info[c].v_samp_factor = 1;
  jpeg.comp_info[0].h_samp_factor = kind.h;
  jpeg.comp_info[0].v_samp_factor = kind.v;
  if (kind.stored == JCS_YCCK) jpeg.comp_info[3].h_samp_factor = kind.h, jpeg.comp_info[3].v_samp_factor = kind.v;
  jpeg.arith_code = kind.arithmetic;
  jpeg.optimize_coding = kind.optimised;
  jpeg.restart_interval = static_cast<unsigned>(kind.restart);
  if (kind.progressive) jpeg_simple_progression(&jpeg);
  jpeg_scan_info scans[3] = {{1, {0}, 0, 63, 0, 0}, {1, {1}, 0, 63, 0, 0}, {1, {2}, 0, 63, 0, 0}};
  if (!kind.interleaved) jpeg.scan_info = scans, jpeg.num_scans = 3;
  if (!kind.scans.empty()) jpeg.scan_info = kind.scans.data(), jpeg.num_scans = static_cast<int>(kind.scans.size());
  if (!kind.tables) jpeg_suppress_tables(&jpeg, TRUE);
  for (int t = 0; t < NUM_QUANT_TBLS; ++t)
    if (jpeg.quant_tbl_ptrs[t]) jpeg.quant_tbl_ptrs[t]->sent_table = FALSE;
  jpeg_start_compress(&jpeg, kind.tables ? TRUE : FALSE);
  std::vector<std::uint8_t> pixels = photo(kind.width, kind.height, kind.channels);
  for (int y = 0; y < kind.height; ++y) {
    JSAMPROW row = pixels.data() + std::ptrdiff_t{y} * kind.width * kind.channels;
    jpeg_write_scanlines(&jpeg, &row, 1);
  }
  return finished(jpeg, memory, size);
}

}  // namespace feedline::decode
