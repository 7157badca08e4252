// SPDX-License-Identifier: Apache-2.0
#pragma once

// Allocates libjpeg's memory for each image from an arena; libjpeg's own memory manager would free it after every
// image. libjpeg itself manages only the memory that is allocated when the decompressor is created.
//
// Tables are also allocated for each image. libjpeg would retain them, so that a file without its own tables would be
// decoded with those of the previous image; here, the result is the same as with a new decompressor.

#include <cstdio>

#include <jpeglib.h>

#include "memory/arena.h"

namespace feedline::decode {

class JpegMemory {
 public:
  // Installs this object as the memory manager of the newly created `jpeg`, and uses its client_data. Must outlive
  // `jpeg`. May be called only once.
  void serve(jpeg_decompress_struct& jpeg);

  std::size_t held_bytes() const { return arena_.held_bytes(); }

 private:
  struct Callbacks;

  void take_back(jpeg_decompress_struct& jpeg);  // all memory of the image

  // Enough for libjpeg's coefficients of multi-scan photos of up to about 1,600 x 1,200 pixels. Single-scan images need
  // far less.
  static constexpr std::size_t kMaxRetained = 8 << 20;

  memory::Arena arena_{kMaxRetained};
  jpeg_memory_mgr own_{};                   // libjpeg's methods
  jvirt_barray_control* newest_ = nullptr;  // of the image's block arrays
};

}  // namespace feedline::decode
