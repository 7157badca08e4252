// SPDX-License-Identifier: Apache-2.0
#include "decode/jpeg/jpeg_coefficients.h"

#include <cstring>
#include <string>

#include "decode/codec.h"
#include "memory/pixels.h"

namespace feedline::decode {
namespace {

// Two bytes for each sample of the largest image that any decoder accepts, with four components and its edge blocks.
constexpr long kMaxLibjpegBytes = memory::PixelBuffer::kMaxPixels * 4 * 2 + (64L << 20);
constexpr std::size_t kFirstBytes = 128 << 10;  // enough for a photo; grows for larger ones

}  // namespace

JpegCoefficients::JpegCoefficients() {
  jpeg_.err = arm(trap_);
  jpeg_create_decompress(&jpeg_);
  jpeg_.mem->max_memory_to_use = kMaxLibjpegBytes;
}

JpegCoefficients::~JpegCoefficients() { jpeg_destroy_decompress(&jpeg_); }

Result<void> JpegCoefficients::open(std::span<const std::byte> bytes) {
  if (setjmp(trap_.jump) != 0) return decode_error(std::string("cannot decode this JPEG: ") + trap_.message);
  attach(source_, jpeg_, bytes);
  jpeg_read_header(&jpeg_, TRUE);
  return {};
}

Result<void> JpegCoefficients::read() {
  if (setjmp(trap_.jump) != 0) return decode_error(std::string("damaged JPEG: ") + trap_.message);
  arrays_ = jpeg_read_coefficients(&jpeg_);
  return {};
}

const JBLOCK* JpegCoefficients::row(int component, JDIMENSION y) {
  auto* const pool = reinterpret_cast<j_common_ptr>(&jpeg_);
  return (*jpeg_.mem->access_virt_barray)(pool, arrays_[component], y, 1, FALSE)[0];
}

bool JpegCoefficients::equal(JpegCoefficients& other) {
  if (jpeg_.num_components != other.jpeg_.num_components) return false;
  for (int c = 0; c < jpeg_.num_components; ++c) {
    const jpeg_component_info &mine = jpeg_.comp_info[c], &theirs = other.jpeg_.comp_info[c];
    if (mine.width_in_blocks != theirs.width_in_blocks || mine.height_in_blocks != theirs.height_in_blocks)
      return false;
    const auto& steps = mine.quant_table->quantval;
    if (std::memcmp(steps, theirs.quant_table->quantval, sizeof steps) != 0) return false;
    for (JDIMENSION y = 0; y < mine.height_in_blocks; ++y)
      if (std::memcmp(row(c, y), other.row(c, y), mine.width_in_blocks * sizeof(JBLOCK)) != 0) return false;
  }
  return true;
}

WrittenJpeg::WrittenJpeg() {
  jpeg_.err = arm(trap_);
  jpeg_create_compress(&jpeg_);
}

WrittenJpeg::~WrittenJpeg() { jpeg_destroy_compress(&jpeg_); }

bool WrittenJpeg::write(JpegCoefficients& from, int restart_interval, HuffmanTables tables) {
  if (setjmp(trap_.jump) != 0) return false;
  attach_destination();
  jpeg_copy_critical_parameters(&from.jpeg_, &jpeg_);
  jpeg_.restart_interval = static_cast<unsigned>(restart_interval);
  jpeg_.optimize_coding = tables == HuffmanTables::kMade;
  if (tables == HuffmanTables::kKept) keep_tables(from.jpeg_);
  jpeg_write_coefficients(&jpeg_, from.arrays_);
  jpeg_finish_compress(&jpeg_);
  return true;
}

void WrittenJpeg::offer(std::size_t filled) {
  destination_.callbacks.next_output_byte = reinterpret_cast<JOCTET*>(destination_.bytes.data() + filled);
  destination_.callbacks.free_in_buffer = destination_.bytes.size() - filled;
}

void WrittenJpeg::attach_destination() {
  jpeg_.client_data = this;
  destination_.bytes.resize(kFirstBytes);
  offer(0);
  destination_.callbacks.init_destination = [](j_compress_ptr) {};
  destination_.callbacks.empty_output_buffer = [](j_compress_ptr jpeg) -> boolean {
    auto& self = *static_cast<WrittenJpeg*>(jpeg->client_data);
    const std::size_t filled = self.destination_.bytes.size();
    self.destination_.bytes.resize(2 * filled);
    self.offer(filled);
    return TRUE;
  };
  destination_.callbacks.term_destination = [](j_compress_ptr jpeg) {
    auto& destination = static_cast<WrittenJpeg*>(jpeg->client_data)->destination_;
    destination.bytes.resize(destination.bytes.size() - destination.callbacks.free_in_buffer);
  };
  jpeg_.dest = &destination_.callbacks;
}

void WrittenJpeg::keep_tables(const jpeg_decompress_struct& from) {
  for (int t = 0; t < NUM_HUFF_TBLS; ++t) {
    copy(from.dc_huff_tbl_ptrs[t], jpeg_.dc_huff_tbl_ptrs[t]);
    copy(from.ac_huff_tbl_ptrs[t], jpeg_.ac_huff_tbl_ptrs[t]);
  }
  for (int c = 0; c < jpeg_.num_components; ++c) {
    jpeg_.comp_info[c].dc_tbl_no = from.comp_info[c].dc_tbl_no;
    jpeg_.comp_info[c].ac_tbl_no = from.comp_info[c].ac_tbl_no;
  }
}

void WrittenJpeg::copy(const JHUFF_TBL* from, JHUFF_TBL*& to) {
  if (!from) return;
  if (!to) to = jpeg_alloc_huff_table(reinterpret_cast<j_common_ptr>(&jpeg_));
  std::memcpy(to->bits, from->bits, sizeof to->bits);
  std::memcpy(to->huffval, from->huffval, sizeof to->huffval);
}

}  // namespace feedline::decode
