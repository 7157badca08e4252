// SPDX-License-Identifier: Apache-2.0
#pragma once

// What libjpeg allocates for an image, from an arena: its own manager gives every image's memory back to malloc. Only
// what a decompressor has from its creation on stays with that manager.
//
// The tables are an image's too. libjpeg keeps them from image to image, and a file that leaves one out would be
// decoded with that of whatever image came before; here it is decoded as by a new decompressor.

#include <cstdio>

#include <jpeglib.h>

#include "memory/arena.h"

namespace feedline::decode {

class JpegMemory {
 public:
  // Becomes the memory of `jpeg`, which was just created, and takes its client_data. Must outlive it. Once.
  void serve(jpeg_decompress_struct& jpeg);

  std::size_t held_bytes() const { return arena_.held_bytes(); }

 private:
  struct Callbacks;

  void take_back(jpeg_decompress_struct& jpeg);  // everything of the image

  // Of photos up to about 1,600 x 1,200 with several scans, whose coefficients libjpeg holds. One scan takes far less.
  static constexpr std::size_t kMostKept = 8 << 20;

  memory::Arena arena_{kMostKept};
  jpeg_memory_mgr own_{};                   // libjpeg's methods
  jvirt_barray_control* newest_ = nullptr;  // of the image's block arrays
};

}  // namespace feedline::decode
