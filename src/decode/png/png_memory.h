// SPDX-License-Identifier: Apache-2.0
#pragma once

// Allocates the per-image memory of libspng and zlib from an arena.

#include <cstddef>

#include "memory/arena.h"

struct spng_ctx;

namespace feedline::decode {

// libspng's allocation functions have no context argument, so the memory is thread-local: this object serves the
// calling thread from begin() until the Image is destroyed.
class PngMemory {
 public:
  // The scope in which one image is decoded. Must not move to another thread.
  class Image {
   public:
    ~Image();
    Image(const Image&) = delete;
    Image& operator=(const Image&) = delete;
    spng_ctx* context() const { return context_; }  // nullptr: out of memory

   private:
    friend class PngMemory;
    explicit Image(PngMemory& memory);
    memory::Arena* const arena_;
    memory::Arena* const outer_;
    spng_ctx* const context_;
  };
  // Requires: the previous Image has been destroyed.
  Image begin() { return Image(*this); }

  std::size_t held_bytes() const { return arena_.held_bytes(); }

 private:
  // zlib's window and state, libspng's input buffer, and the rows of an image up to 50,000 pixels wide
  static constexpr std::size_t kMaxRetained = 512 << 10;
  memory::Arena arena_{kMaxRetained};
};

}  // namespace feedline::decode
