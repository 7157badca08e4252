// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/image_blocks.h"

#include <string>
#include <tuple>
#include <utility>

namespace feedline::device::cuda {
namespace {

constexpr std::size_t kRounding = std::size_t{64} << 10;
constexpr std::size_t kMostSlack = 2;  // maximum ratio of a block's size to its content

}  // namespace

ImageBlock::~ImageBlock() {
  if (address != 0) blocks->give_back(*this);
}

ImageBlocks::~ImageBlocks() {
  if (!context_->driver().is_of_a_parent()) free_all();
}

Result<std::shared_ptr<ImageBlock>> ImageBlocks::take(std::size_t bytes, StreamHandle stream) {
  auto block = std::make_shared<ImageBlock>();
  block->blocks = shared_from_this();
  if (!take_free(bytes, *block)) FEEDLINE_CHECK_OK(take_fresh(bytes, *block));
  // the last image of an unused block may still be written
  if (block->end) FEEDLINE_CHECK_OK(block->end->let_wait(stream));
  return block;
}

bool ImageBlocks::take_free(std::size_t bytes, ImageBlock& block) {
  const std::lock_guard lock(mutex_);
  const auto found = free_.lower_bound(bytes);
  if (found == free_.end() || found->first > kMostSlack * bytes + kRounding) return false;
  block.size = found->first;
  block.address = found->second.address;
  block.end = std::move(found->second.end);
  free_.erase(found);
  return true;
}

Result<void> ImageBlocks::take_fresh(std::size_t bytes, ImageBlock& block) {
  const std::size_t size = (bytes + kRounding - 1) / kRounding * kRounding;
  const auto ask = [&] { return context_->call("cuMemAlloc", context_->calls().alloc, &block.address, size); };
  auto got = ask();
  if (!got && free_all()) got = ask();
  if (!got) {
    block.address = 0;
    Error error = std::move(got).error();
    error.what = context_->name() + " (cuda:" + std::to_string(context_->index()) + ") has no room for an image of " +
                 std::to_string(bytes) + " bytes in addition to the " + std::to_string(held_bytes()) +
                 " of other images decoded for this loader: " + error.what;
    return std::unexpected(std::move(error));
  }
  block.size = size;
  const std::lock_guard lock(mutex_);
  held_bytes_ += size;
  return {};
}

void ImageBlocks::give_back(ImageBlock& block) {
  if (context_->driver().is_of_a_parent()) return;  // the mutex may be locked forever in a child
  const std::lock_guard lock(mutex_);
  free_.emplace(block.size, Free{block.address, std::move(block.end)});
}

// Frees all blocks, after CUDA has waited for work that uses them. Returns false if there were no blocks to free.
bool ImageBlocks::free_all() {
  std::multimap<std::size_t, Free> free;
  {
    const std::lock_guard lock(mutex_);
    free = std::exchange(free_, {});
    for (const auto& [size, block] : free) held_bytes_ -= size;
  }
  for (const auto& [size, block] : free)
    std::ignore = context_->call("cuMemFree", context_->calls().free, block.address);
  return !free.empty();
}

std::uint64_t ImageBlocks::held_bytes() const {
  const std::lock_guard lock(mutex_);
  return held_bytes_;
}

}  // namespace feedline::device::cuda
