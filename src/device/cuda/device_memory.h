// SPDX-License-Identifier: Apache-2.0
#pragma once

// Memory of a GPU for batches. What the training loop lets go of may still be read by kernels that it has launched, on
// whichever stream. So a block goes through these states:
//
//   lent       somebody holds it
//   released   nobody does; which work may still read it is not marked yet. No call of the driver is made here, as who
//              lets go may be a thread that captures a CUDA graph, or a process that ends
//   marked     the training loop has taken a later batch, and an event was recorded after all that the GPU had been
//              given by then
//   free       that event is past; or the next copy into the block waits for it, on its stream

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

// Addresses that it gives are the GPU's: the host must not read there. Thread-safe.
class DeviceMemory final : public memory::Allocator {
 public:
  // stream: the one that its blocks are written on, which outlives what is written.
  DeviceMemory(std::shared_ptr<const Context> context, StreamHandle stream);
  ~DeviceMemory() override;

  // A block that may be written on the stream. kStorage with ENOMEM: the GPU has no room; the message has its numbers.
  Result<std::byte*> allocate(std::size_t bytes) override;
  void release(std::byte* data, std::size_t bytes) override;

  // By the training loop, when it takes a batch: what was released until now can be used once the GPU has done what it
  // was given. consumer: the loop's stream, which captures nothing. An error: the GPU has failed.
  Result<void> mark(StreamHandle consumer);

  std::uint64_t held_bytes() const { return held_bytes_; }  // of the GPU, lent ones included

 private:
  struct Block {
    std::byte* data = nullptr;
    std::size_t size = 0;
  };
  struct Marked {
    std::shared_ptr<const Event> event;
    std::vector<Block> blocks;
  };

  Result<std::byte*> take_there(std::size_t size);  // nullptr: there is none
  Result<std::byte*> take_marked(std::size_t size, bool at_once);
  Result<std::byte*> take_fresh(std::size_t size);
  Result<DeviceAddress> ask_driver(std::size_t size);
  std::size_t give_back(bool all);
  void sweep();

  const std::shared_ptr<const Context> context_;
  const StreamHandle stream_;
  std::mutex mutex_;  // no call of the driver that waits for a GPU is made under it
  std::vector<Block> released_;
  std::deque<Marked> marked_;  // the oldest first
  std::vector<Block> free_;
  std::atomic<std::uint64_t> held_bytes_ = 0;
  std::atomic<int> unseen_ = 0;  // blocks that CUDA was asked for since mark() was called
};

}  // namespace feedline::device::cuda
