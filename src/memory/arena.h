// SPDX-License-Identifier: Apache-2.0
#pragma once

// Memory for a codec's allocations during one image, which are all freed together. The next image reuses the memory, so
// after warm-up a thread allocates nothing.

#include <cstddef>

namespace feedline::memory {

// Not thread-safe. Each allocation is followed by a gap that the address sanitizer checks.
class Arena {
 public:
  static constexpr std::size_t kAlignment = 64;

  // Between images, at most `most_kept` bytes are retained, so a malicious image cannot make the thread retain more.
  explicit Arena(std::size_t most_kept) : most_kept_(most_kept) {}
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // Returns memory aligned to kAlignment, with unspecified contents, valid until reset(); nullptr if memory runs out.
  // Does not throw, so C libraries may call it.
  void* allocate(std::size_t bytes) noexcept;
  // Frees everything. If an image has used several blocks, replaces them with one block of their total size for the
  // next image.
  void reset() noexcept;

  std::size_t held_bytes() const { return held_; }

 private:
  struct Block;
  bool add_block(std::size_t bytes) noexcept;
  void release() noexcept;

  const std::size_t most_kept_;
  Block* newest_ = nullptr;  // the one in use
  std::size_t used_ = 0;     // of the newest
  std::size_t held_ = 0;     // by all blocks
};

}  // namespace feedline::memory
