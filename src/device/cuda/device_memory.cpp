// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/device_memory.h"

#include <algorithm>
#include <cerrno>
#include <string>
#include <tuple>
#include <utility>

#include "base/check.h"

namespace feedline::device::cuda {
namespace {

constexpr std::size_t kUnit = 512;  // CUDA's own granularity is no finer

// After this many new blocks without a call to mark(), DeviceMemory assumes that the training loop takes batches
// without calling mark(). Released blocks are then freed through CUDA, which waits for the GPU first.
constexpr int kMostUnseen = 16;

// The number of blocks that may wait for the GPU before another block is allocated. With fewer, the next copy would
// wait for the current work.
constexpr std::size_t kLeastMarked = 2;

std::size_t block_bytes(std::size_t bytes) {
  std::size_t size = 0;
  return __builtin_add_overflow(bytes, kUnit - 1, &size) ? bytes : size / kUnit * kUnit;
}

std::byte* pointer(DeviceAddress address) { return reinterpret_cast<std::byte*>(address); }
DeviceAddress address_of(const std::byte* data) { return reinterpret_cast<DeviceAddress>(data); }

}  // namespace

DeviceMemory::DeviceMemory(std::shared_ptr<const Context> context, StreamHandle stream)
    : context_(std::move(context)), stream_(stream) {}

// CUDA frees memory only when no started work uses it.
DeviceMemory::~DeviceMemory() { give_back(true); }

Result<std::byte*> DeviceMemory::allocate(std::size_t bytes) {
  FEEDLINE_CHECK(bytes > 0);
  const std::size_t size = block_bytes(bytes);
  FEEDLINE_TRY(std::byte * there, take_there(size));
  if (there != nullptr) return there;
  if (++unseen_ > kMostUnseen) give_back(false);
  return take_fresh(size);
}

Result<std::byte*> DeviceMemory::take_there(std::size_t size) {
  const std::lock_guard lock(mutex_);
  sweep();
  const auto found = std::ranges::find(free_, size, &Block::size);
  if (found == free_.end()) return take_marked(size, false);
  std::byte* const data = found->data;
  free_.erase(found);
  return data;
}

// Makes blocks whose events have completed available again. If an event reports a failure, its block is not reused,
// because the GPU has failed.
void DeviceMemory::sweep() {
  while (!marked_.empty()) {
    const auto past = marked_.front().event->is_past();
    if (!past || !*past) return;
    free_.insert(free_.end(), marked_.front().blocks.begin(), marked_.front().blocks.end());
    marked_.pop_front();
  }
}

// Returns the oldest marked block of this size, after making the stream wait for it, or nullptr if there is none.
// Without `at_once`, also returns nullptr if only a few blocks are marked.
Result<std::byte*> DeviceMemory::take_marked(std::size_t size, bool at_once) {
  std::size_t fitting = 0;
  for (const Marked& mark : marked_)
    fitting += static_cast<std::size_t>(std::ranges::count(mark.blocks, size, &Block::size));
  if (fitting == 0 || (fitting < kLeastMarked && !at_once)) return nullptr;
  for (Marked& mark : marked_) {
    const auto found = std::ranges::find(mark.blocks, size, &Block::size);
    if (found == mark.blocks.end()) continue;
    FEEDLINE_CHECK_OK(mark.event->let_wait(stream_));
    std::byte* const data = found->data;
    mark.blocks.erase(found);
    return data;
  }
  return nullptr;
}

Result<DeviceAddress> DeviceMemory::ask_driver(std::size_t size) {
  DeviceAddress address = 0;
  FEEDLINE_CHECK_OK(context_->call("cuMemAlloc", context_->calls().alloc, &address, size));
  return address;
}

Result<std::byte*> DeviceMemory::take_fresh(std::size_t size) {
  auto got = ask_driver(size);
  if (!got && got.error().system_errno == ENOMEM) {
    {
      const std::lock_guard lock(mutex_);
      FEEDLINE_TRY(std::byte * marked, take_marked(size, true));
      if (marked != nullptr) return marked;
    }
    if (give_back(false) > 0) got = ask_driver(size);
  }
  if (got) {
    held_bytes_ += size;
    return pointer(*got);
  }
  Error error = std::move(got).error();
  std::size_t left = 0, all = 0;
  const bool is_known = context_->call("cuMemGetInfo", context_->calls().memory_info, &left, &all).has_value();
  error.what = context_->name() + " (cuda:" + std::to_string(context_->index()) + "): " + std::to_string(size) +
               " bytes for a batch: " + error.what;
  if (is_known)
    error.what += "; " + std::to_string(left) + " of its " + std::to_string(all) +
                  " bytes are free; this loader's batches use " + std::to_string(held_bytes()) + " bytes";
  return std::unexpected(std::move(error));
}

// Frees the free and released blocks through CUDA, and also the marked blocks if `all` is set. Returns the total size
// of the blocks. Call this without holding the lock, because CUDA may wait for the GPU.
std::size_t DeviceMemory::give_back(bool all) {
  std::vector<Block> blocks;
  {
    const std::lock_guard lock(mutex_);
    blocks = std::exchange(free_, {});
    blocks.insert(blocks.end(), released_.begin(), released_.end());
    released_.clear();
    for (; all && !marked_.empty(); marked_.pop_front())
      blocks.insert(blocks.end(), marked_.front().blocks.begin(), marked_.front().blocks.end());
  }
  std::size_t bytes = 0;
  for (const Block& block : blocks) {
    bytes += block.size;
    if (!context_->driver().is_of_a_parent())
      std::ignore = context_->call("cuMemFree", context_->calls().free, address_of(block.data));
  }
  held_bytes_ -= bytes;
  return bytes;
}

void DeviceMemory::release(std::byte* data, std::size_t bytes) {
  if (context_->driver().is_of_a_parent()) return;  // the mutex may be locked forever in a child
  const std::lock_guard lock(mutex_);
  released_.push_back({data, block_bytes(bytes)});
}

Result<void> DeviceMemory::mark(StreamHandle consumer) {
  const std::lock_guard lock(mutex_);
  unseen_ = 0;
  if (released_.empty()) return {};
  FEEDLINE_TRY(auto event, Event::make(context_));
  FEEDLINE_CHECK_OK(context_->calls().context_record != nullptr ? event->record_all() : event->record(consumer));
  marked_.push_back({std::move(event), std::exchange(released_, {})});
  return {};
}

}  // namespace feedline::device::cuda
