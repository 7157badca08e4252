// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/pinned_allocator.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "base/check.h"

namespace feedline::device::cuda {
namespace {

constexpr std::size_t kPage = 4096;

std::string words_for(std::size_t size, std::size_t blocks) {
  return "page-locked memory for " + std::to_string(blocks) + (blocks == 1 ? " batch of " : " batches of ") +
         std::to_string(size) + " bytes";
}

}  // namespace

PinnedAllocator::PinnedAllocator(std::shared_ptr<const Context> context, std::function<void()> recall,
                                 std::function<std::uint64_t()> room)
    : locking_(std::move(context), std::move(room)), recall_(std::move(recall)) {}

PinnedAllocator::~PinnedAllocator() {
  for (const auto& [size, blocks] : spare_)
    for (std::byte* block : blocks)
      if (size >= kSlab) locking_.free(block);
  for (std::byte* slab : slabs_) locking_.free(slab);
}

std::size_t PinnedAllocator::block_bytes(std::size_t bytes) {
  const std::size_t unit = bytes < kSlab ? kAlignment : kPage;
  std::size_t size = 0;
  return __builtin_add_overflow(bytes, unit - 1, &size) ? bytes : size / unit * unit;
}

std::byte* PinnedAllocator::take_spare(std::size_t size) {
  const std::lock_guard lock(mutex_);
  const auto found = spare_.find(size);
  if (found == spare_.end()) return nullptr;
  std::byte* const data = found->second.back();
  found->second.pop_back();
  if (found->second.empty()) spare_.erase(found);
  if (size < kSlab) return data;
  spare_bytes_ -= size;
  lend(size);
  return data;
}

void PinnedAllocator::lend(std::size_t size) {
  lent_bytes_ += size;
  most_lent_bytes_ = std::max(most_lent_bytes_, lent_bytes_);
}

// Locks a range of `blocks` blocks, which are the first of `of_them` required blocks.
Result<std::byte*> PinnedAllocator::lock_pages(std::size_t size, std::size_t blocks, std::size_t of_them) {
  std::uint64_t all = 0;
  if (__builtin_mul_overflow(size, of_them, &all)) all = std::numeric_limits<std::uint64_t>::max();
  const std::string what = words_for(size, of_them);
  FEEDLINE_CHECK_OK(locking_.check_room(what, all));
  return locking_.allocate(what, size * blocks);
}

Result<void> PinnedAllocator::cut_slab(std::size_t size, std::size_t blocks) {
  FEEDLINE_TRY(std::byte * slab, lock_pages(size, blocks, blocks));
  const std::lock_guard lock(mutex_);
  slabs_.push_back(slab);
  slab_bytes_ += size * blocks;
  auto& spare = spare_[size];
  for (std::size_t i = 0; i < blocks; ++i) spare.push_back(slab + i * size);
  return {};
}

Result<void> PinnedAllocator::lock_blocks(std::size_t size, std::size_t blocks) {
  std::vector<std::byte*> locked;
  for (std::size_t left = blocks; left > 0; --left) {
    auto block = lock_pages(size, 1, left);
    if (!block) {
      for (std::byte* other : locked) locking_.free(other);
      return std::unexpected(std::move(block).error());
    }
    locked.push_back(*block);
  }
  const std::lock_guard lock(mutex_);
  auto& spare = spare_[size];
  spare.insert(spare.end(), locked.begin(), locked.end());
  spare_bytes_ += size * blocks;
  most_lent_bytes_ = std::max(most_lent_bytes_, lent_bytes_ + spare_bytes_);
  return {};
}

Result<void> PinnedAllocator::prepare(std::size_t bytes, std::size_t count) {
  if (count == 0) return {};
  const std::size_t size = block_bytes(bytes);
  return size < kSlab ? cut_slab(size, count) : lock_blocks(size, count);
}

Result<std::byte*> PinnedAllocator::allocate(std::size_t bytes) {
  FEEDLINE_CHECK(bytes > 0);
  const std::size_t size = block_bytes(bytes);
  if (std::byte* const data = take_spare(size)) return data;
  recall_();
  // repeat if other threads take the new block, for example from a slab
  while (true) {
    if (std::byte* const data = take_spare(size)) return data;
    if (size >= kSlab) break;
    FEEDLINE_CHECK_OK(cut_slab(size, kSlab / size));
  }
  FEEDLINE_TRY(std::byte * locked, lock_pages(size, 1, 1));
  const std::lock_guard lock(mutex_);
  lend(size);
  return locked;
}

void PinnedAllocator::release(std::byte* data, std::size_t bytes) {
  if (locking_.context().driver().is_of_a_parent()) return;  // the mutex may be locked forever in a child
  const std::size_t size = block_bytes(bytes);
  std::vector<std::byte*> surplus;
  {
    const std::lock_guard lock(mutex_);
    spare_[size].push_back(data);
    if (size < kSlab) return;
    lent_bytes_ -= size;
    spare_bytes_ += size;
    surplus = take_surplus(size);
  }
  for (std::byte* block : surplus) locking_.free(block);
}

// Removes and returns blocks of sizes other than `size` if more bytes are cached than were ever lent at the same time.
std::vector<std::byte*> PinnedAllocator::take_surplus(std::size_t size) {
  std::vector<std::byte*> surplus;
  for (auto other = spare_.lower_bound(kSlab); other != spare_.end();) {
    if (lent_bytes_ + spare_bytes_ <= 2 * most_lent_bytes_) break;
    if (other->first == size) {
      ++other;
      continue;
    }
    surplus.push_back(other->second.back());
    spare_bytes_ -= other->first;
    other->second.pop_back();
    if (other->second.empty()) other = spare_.erase(other);
  }
  return surplus;
}

std::uint64_t PinnedAllocator::locked_bytes() const {
  const std::lock_guard lock(mutex_);
  return slab_bytes_ + spare_bytes_ + lent_bytes_;
}

}  // namespace feedline::device::cuda
