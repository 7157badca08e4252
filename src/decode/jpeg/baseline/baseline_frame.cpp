// SPDX-License-Identifier: Apache-2.0
#include "decode/jpeg/baseline/baseline_frame.h"

#include <algorithm>
#include <iterator>

namespace feedline::decode::baseline {
namespace {

// libjpeg upsamples narrower chroma in a different way.
constexpr int kMinChromaWidth = 3;

bool is_plain_coding(const jpeg_decompress_struct& jpeg) {
  return !jpeg.arith_code && jpeg.data_precision == 8 && !jpeg.CCIR601_sampling;
}

bool is_plain_scan(const jpeg_decompress_struct& jpeg) {
  return !jpeg.progressive_mode && jpeg.comps_in_scan == jpeg.num_components && jpeg.Ss == 0 &&
         jpeg.Se == DCTSIZE2 - 1 && jpeg.Ah == 0 && jpeg.Al == 0;
}

bool is_known_layout(const jpeg_decompress_struct& jpeg) {
  const jpeg_component_info* const component = jpeg.comp_info;
  if (jpeg.num_components == 1)
    return jpeg.jpeg_color_space == JCS_GRAYSCALE && component[0].h_samp_factor == 1 && component[0].v_samp_factor == 1;
  if (jpeg.num_components != 3 || jpeg.jpeg_color_space != JCS_YCbCr) return false;
  const int across = component[0].h_samp_factor, down = component[0].v_samp_factor;
  if (across > 2 || down > across) return false;
  return std::all_of(component + 1, component + 3,
                     [](const auto& chroma) { return chroma.h_samp_factor == 1 && chroma.v_samp_factor == 1; });
}

bool copy_huffman(const JHUFF_TBL* from, HuffmanSpec& to) {
  if (!from) return false;
  std::copy(std::begin(from->bits) + 1, std::end(from->bits), to.counts.begin() + 1);
  std::ranges::copy(from->huffval, to.symbols.begin());
  return true;
}

bool copy_quantisation(const jpeg_decompress_struct& jpeg, const jpeg_component_info& from, Component& to) {
  if (from.quant_tbl_no < 0 || from.quant_tbl_no >= NUM_QUANT_TBLS) return false;
  const JQUANT_TBL* const quantisation = jpeg.quant_tbl_ptrs[from.quant_tbl_no];
  if (!quantisation) return false;
  std::ranges::copy(quantisation->quantval, to.quantisation.begin());
  to.across = from.h_samp_factor, to.down = from.v_samp_factor;
  return true;
}

bool copy_tables(const jpeg_decompress_struct& jpeg, const jpeg_component_info& from, Component& to) {
  const auto in_range = [](int number) { return number >= 0 && number < NUM_HUFF_TBLS; };
  return in_range(from.dc_tbl_no) && in_range(from.ac_tbl_no) &&
         copy_huffman(jpeg.dc_huff_tbl_ptrs[from.dc_tbl_no], to.dc) &&
         copy_huffman(jpeg.ac_huff_tbl_ptrs[from.ac_tbl_no], to.ac);
}

// Performs the checks that baseline and progressive images have in common.
std::optional<Frame> frame_of(const jpeg_decompress_struct& jpeg) {
  if (!is_plain_coding(jpeg) || !is_known_layout(jpeg)) return std::nullopt;
  Frame frame;
  frame.width = static_cast<int>(jpeg.image_width), frame.height = static_cast<int>(jpeg.image_height);
  frame.components = jpeg.num_components;
  frame.restart_interval = static_cast<int>(jpeg.restart_interval);
  for (int i = 0; i < frame.components; ++i)
    if (!copy_quantisation(jpeg, jpeg.comp_info[i], frame.component[i])) return std::nullopt;
  if (frame.component[0].across == 2 && frame.chroma_width() < kMinChromaWidth) return std::nullopt;
  frame.scan = {reinterpret_cast<const std::byte*>(jpeg.src->next_input_byte), jpeg.src->bytes_in_buffer};
  return frame;
}

}  // namespace

std::optional<Frame> baseline_frame(const jpeg_decompress_struct& jpeg) {
  if (!is_plain_scan(jpeg)) return std::nullopt;
  auto frame = frame_of(jpeg);
  if (!frame) return std::nullopt;
  for (int i = 0; i < frame->components; ++i) {
    // an MCU has the components' blocks in the order of the scan
    if (jpeg.cur_comp_info[i] != &jpeg.comp_info[i]) return std::nullopt;
    if (!copy_tables(jpeg, jpeg.comp_info[i], frame->component[i])) return std::nullopt;
  }
  return frame;
}

std::optional<Frame> progressive_frame(const jpeg_decompress_struct& jpeg) {
  return jpeg.progressive_mode ? frame_of(jpeg) : std::nullopt;
}

}  // namespace feedline::decode::baseline
