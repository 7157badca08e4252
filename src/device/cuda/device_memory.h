// SPDX-License-Identifier: Apache-2.0
#pragma once

// GPU memory for batches. Kernels that the training loop has launched on any stream may still read memory that the loop
// has released. A block therefore goes through these states:
//
// - lent: the block has a holder.
// - released: the block has no holder, but no event marks the end of its use yet. The driver is not called here, as the
//   releasing thread may be capturing a CUDA graph, or the process may be exiting.
// - marked: the training loop has taken a later batch, and an event was recorded after all GPU work queued before that.
// - free: the event has completed, or the next copy into the block waits for it on the copy's stream.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "device/cuda/context.h"
#include "memory/allocator.h"

namespace feedline::device::cuda {

// Block addresses are GPU addresses: the host must not read from them. Thread-safe.
class DeviceMemory final : public memory::Allocator {
 public:
  // stream: the stream that writes to the blocks; it must outlive these writes.
  DeviceMemory(std::shared_ptr<const Context> context, StreamHandle stream);
  ~DeviceMemory() override;

  // Returns a block that the stream may write to. kStorage with ENOMEM: the GPU is out of memory; the message reports
  // the sizes.
  Result<std::byte*> allocate(std::size_t bytes) override;
  void release(std::byte* data, std::size_t bytes) override;

  // Called when the training loop takes a batch: released blocks become usable when the GPU has completed the work
  // queued so far. consumer: the loop's stream, which must not be capturing. An error means that the GPU has failed.
  Result<void> mark(StreamHandle consumer);

  std::uint64_t held_bytes() const { return held_bytes_; }  // GPU memory, including lent blocks

 private:
  struct Block {
    std::byte* data = nullptr;
    std::size_t size = 0;
  };
  struct Marked {
    std::shared_ptr<const Event> event;
    std::vector<Block> blocks;
  };

  Result<std::byte*> take_there(std::size_t size);  // nullptr if there is none
  Result<std::byte*> take_marked(std::size_t size, bool at_once);
  Result<std::byte*> take_fresh(std::size_t size);
  Result<DeviceAddress> ask_driver(std::size_t size);
  std::size_t give_back(bool all);
  void sweep();

  const std::shared_ptr<const Context> context_;
  const StreamHandle stream_;
  std::mutex mutex_;  // never held during driver calls that wait for a GPU
  std::vector<Block> released_;
  std::deque<Marked> marked_;  // oldest first
  std::vector<Block> free_;
  std::atomic<std::uint64_t> held_bytes_ = 0;
  std::atomic<int> unseen_ = 0;  // blocks allocated from CUDA since the last mark()
};

}  // namespace feedline::device::cuda
