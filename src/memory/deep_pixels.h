// SPDX-License-Identifier: Apache-2.0
#pragma once

// Images with the stored values of a file, of any dtype and number of channels (decode(dtype=)).

#include "feedline/array.h"
#include "memory/pixels.h"

namespace feedline::memory {

struct DeepView {
  static constexpr int kMostChannels = 1024;

  PixelView bytes;  // as many "channels" as a pixel has bytes
  DType dtype = DType::kUint8;
  int channels = 1;

  int width() const { return bytes.width; }
  int height() const { return bytes.height; }
  template <typename T>
  const T* row(int y) const {
    return reinterpret_cast<const T*>(bytes.row(y));
  }
};

}  // namespace feedline::memory
