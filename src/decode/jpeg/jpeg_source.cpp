// SPDX-License-Identifier: Apache-2.0
#include "decode/jpeg/jpeg_source.h"

namespace feedline::decode {
namespace {

constexpr JOCTET kEndOfImage[] = {0xFF, JPEG_EOI};

JpegSource& source_of(j_decompress_ptr jpeg) { return *reinterpret_cast<JpegSource*>(jpeg->src); }

void nothing(j_decompress_ptr) {}

boolean fill(j_decompress_ptr jpeg) {
  JpegSource& source = source_of(jpeg);
  source.ran_out = true;
  source.callbacks.next_input_byte = kEndOfImage;
  source.callbacks.bytes_in_buffer = sizeof kEndOfImage;
  return TRUE;
}

void skip(j_decompress_ptr jpeg, long count) {
  if (count <= 0) return;
  jpeg_source_mgr& callbacks = source_of(jpeg).callbacks;
  if (static_cast<std::size_t>(count) > callbacks.bytes_in_buffer) {
    fill(jpeg);
  } else {
    callbacks.next_input_byte += count;
    callbacks.bytes_in_buffer -= static_cast<std::size_t>(count);
  }
}

}  // namespace

void attach(JpegSource& source, jpeg_decompress_struct& jpeg, std::span<const std::byte> bytes) {
  source.callbacks.init_source = nothing;
  source.callbacks.fill_input_buffer = fill;
  source.callbacks.skip_input_data = skip;
  source.callbacks.resync_to_restart = jpeg_resync_to_restart;
  source.callbacks.term_source = nothing;
  source.callbacks.next_input_byte = reinterpret_cast<const JOCTET*>(bytes.data());
  source.callbacks.bytes_in_buffer = bytes.size();
  source.end = bytes.data() + bytes.size();
  source.ran_out = false;
  jpeg.src = &source.callbacks;
}

bool end_marker_ahead(const JpegSource& source) {
  if (source.ran_out) return false;
  // from the end: in an intact file, the marker comes last, so this takes one step
  const std::byte* const begin = source.end - source.callbacks.bytes_in_buffer;
  for (const std::byte* at = source.end - 1; at > begin; --at)
    if (*at == std::byte{JPEG_EOI} && at[-1] == std::byte{0xFF}) return true;
  return false;
}

}  // namespace feedline::decode
