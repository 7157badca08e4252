// SPDX-License-Identifier: Apache-2.0
#include "memory/arena.h"

#include <sanitizer/asan_interface.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <limits>

namespace feedline::memory {
namespace {

constexpr std::size_t kFirstBlock = 64 << 10;  // enough for a small image: zlib's window, libjpeg's tables
constexpr std::size_t kGap = Arena::kAlignment;
constexpr std::size_t kMost = std::numeric_limits<std::size_t>::max() / 4;

constexpr std::size_t aligned(std::size_t bytes) {
  return (bytes + Arena::kAlignment - 1) / Arena::kAlignment * Arena::kAlignment;
}

}  // namespace

// A header before the allocated bytes. The header's size keeps these bytes aligned.
struct alignas(Arena::kAlignment) Arena::Block {
  Block* older;
  std::size_t bytes;
  std::byte* data() { return reinterpret_cast<std::byte*>(this + 1); }
};

Arena::~Arena() { release(); }

void* Arena::allocate(std::size_t bytes) noexcept {
  if (bytes > kMost) return nullptr;
  const std::size_t needed = aligned(bytes) + kGap;
  if ((newest_ == nullptr || newest_->bytes - used_ < needed) && !add_block(needed)) return nullptr;
  std::byte* const given = newest_->data() + used_;
  used_ += needed;
  ASAN_UNPOISON_MEMORY_REGION(given, bytes);
  return given;
}

bool Arena::add_block(std::size_t bytes) noexcept {
  bytes = std::max(bytes, kFirstBlock);
  void* const room = std::aligned_alloc(kAlignment, sizeof(Block) + bytes);
  if (room == nullptr) return false;
  newest_ = new (room) Block{newest_, bytes};
  used_ = 0;
  held_ += bytes;
  ASAN_POISON_MEMORY_REGION(newest_->data(), bytes);
  return true;
}

void Arena::release() noexcept {
  while (newest_ != nullptr) {
    Block* const block = newest_;
    newest_ = block->older;
    ASAN_UNPOISON_MEMORY_REGION(block->data(), block->bytes);
    std::free(block);
  }
  used_ = held_ = 0;
}

void Arena::reset() noexcept {
  const std::size_t held = held_;
  if (newest_ == nullptr) return;
  if (newest_->older == nullptr && held <= most_kept_) {
    used_ = 0;
    ASAN_POISON_MEMORY_REGION(newest_->data(), newest_->bytes);
    return;
  }
  release();
  // to a power of two, so that images of growing size soon fit
  if (held <= most_kept_) add_block(std::min(std::bit_ceil(held), most_kept_));
}

}  // namespace feedline::memory
