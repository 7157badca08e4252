// SPDX-License-Identifier: Apache-2.0
#pragma once

// Lets libjpeg read from memory. If the bytes run out, libjpeg's own memory source warns and repeats an end-of-image
// marker. This source adds the marker without a warning and records the fact, so that the decoder can distinguish a
// missing end marker from missing pixels.

#include <cstddef>
#include <cstdio>
#include <span>

#include <jpeglib.h>

namespace feedline::decode {

struct JpegSource {
  jpeg_source_mgr callbacks;  // must be first: libjpeg passes back a pointer to it
  const std::byte* end;
  bool ran_out;  // libjpeg requested more bytes than there are
};

// Makes `source` the input of `jpeg`. Both must exist until the image has been read.
void attach(JpegSource& source, jpeg_decompress_struct& jpeg, std::span<const std::byte> bytes);

// Returns whether the data that libjpeg has not read yet contains an end-of-image marker.
bool end_marker_ahead(const JpegSource& source);

}  // namespace feedline::decode
