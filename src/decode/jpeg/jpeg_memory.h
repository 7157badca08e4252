// SPDX-License-Identifier: Apache-2.0
#pragma once

// Allocates libjpeg's per-image memory from an arena; libjpeg's own manager returns it to malloc after every image.
// Only memory allocated when the decompressor is created stays with that manager.
//
// Tables are per-image as well. libjpeg retains them between images, so a file without its own tables would be decoded
// with those of the previous image; here it is decoded as by a new decompressor.

#include <cstdio>

#include <jpeglib.h>

#include "memory/arena.h"

namespace feedline::decode {

class JpegMemory {
 public:
  // Installs itself as the memory manager of the newly created `jpeg` and uses its client_data. Must outlive `jpeg`.
  // Can be called once.
  void serve(jpeg_decompress_struct& jpeg);

  std::size_t held_bytes() const { return arena_.held_bytes(); }

 private:
  struct Callbacks;

  void take_back(jpeg_decompress_struct& jpeg);  // all memory of the image

  // Enough for the coefficients that libjpeg holds for multi-scan photos up to about 1,600 x 1,200. Single scans need
  // far less.
  static constexpr std::size_t kMostKept = 8 << 20;

  memory::Arena arena_{kMostKept};
  jpeg_memory_mgr own_{};                   // libjpeg's methods
  jvirt_barray_control* newest_ = nullptr;  // of the image's block arrays
};

}  // namespace feedline::decode
