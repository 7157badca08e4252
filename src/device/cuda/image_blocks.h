// SPDX-License-Identifier: Apache-2.0
#pragma once

// GPU memory for decoded images of different sizes.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "device/cuda/context.h"

namespace feedline::device::cuda {

class ImageBlocks;

// An image that is being decoded or used. Its memory is not overwritten while the image has a holder.
struct ImageBlock {
  std::shared_ptr<ImageBlocks> blocks;  // its owner
  DeviceAddress address = 0;
  std::size_t size = 0;
  std::shared_ptr<const Event> end;  // end of the write; nullptr if nothing writes it

  ImageBlock() = default;
  ~ImageBlock();
  ImageBlock(const ImageBlock&) = delete;
  ImageBlock& operator=(const ImageBlock&) = delete;
};

// Blocks are reused. Freeing a block through CUDA waits for the GPU, so blocks are freed only if memory runs out or the
// loader is destroyed. Thread-safe.
class ImageBlocks : public std::enable_shared_from_this<ImageBlocks> {
 public:
  explicit ImageBlocks(std::shared_ptr<const Context> context) : context_(std::move(context)) {}
  ~ImageBlocks();
  ImageBlocks(const ImageBlocks&) = delete;
  ImageBlocks& operator=(const ImageBlocks&) = delete;

  // Returns memory that this stream may write. kStorage with ENOMEM: the GPU is out of memory; the message reports the
  // sizes.
  Result<std::shared_ptr<ImageBlock>> take(std::size_t bytes, StreamHandle stream);
  std::uint64_t held_bytes() const;  // GPU memory, including free blocks

 private:
  friend struct ImageBlock;
  struct Free {
    DeviceAddress address = 0;
    std::shared_ptr<const Event> end;
  };
  bool take_free(std::size_t bytes, ImageBlock& block);
  Result<void> take_fresh(std::size_t bytes, ImageBlock& block);
  void give_back(ImageBlock& block);
  bool free_all();

  const std::shared_ptr<const Context> context_;
  mutable std::mutex mutex_;
  std::multimap<std::size_t, Free> free_;  // by size
  std::uint64_t held_bytes_ = 0;
};

}  // namespace feedline::device::cuda
