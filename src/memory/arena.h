// SPDX-License-Identifier: Apache-2.0
#pragma once

// Memory for what a codec allocates while it decodes one image, all of which ends together. The next image gets the
// same memory, so a warm thread allocates nothing.

#include <cstddef>

namespace feedline::memory {

// Not for several threads at once. Behind every allocation lies a gap that the address sanitizer watches over.
class Arena {
 public:
  static constexpr std::size_t kAlignment = 64;

  // Between images no more than `most_kept` bytes stay: one hostile image pins no more.
  explicit Arena(std::size_t most_kept) : most_kept_(most_kept) {}
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // On a multiple of kAlignment, with unspecified contents, valid until reset(); nullptr: there is no memory. Throws
  // nothing, so C libraries may call it.
  void* allocate(std::size_t bytes) noexcept;
  // Takes everything back. What took several blocks gets one of that size the next time.
  void reset() noexcept;

  std::size_t held_bytes() const { return held_; }

 private:
  struct Block;
  bool add_block(std::size_t bytes) noexcept;
  void release() noexcept;

  const std::size_t most_kept_;
  Block* newest_ = nullptr;  // the one that is allocated from
  std::size_t used_ = 0;     // of the newest
  std::size_t held_ = 0;     // by all blocks
};

}  // namespace feedline::memory
