// SPDX-License-Identifier: Apache-2.0
#pragma once

// Memory of a GPU for images that are decoded there, of many sizes.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "device/cuda/context.h"

namespace feedline::device::cuda {

class ImageBlocks;

// An image on its way. Whoever holds it keeps it from being written again.
struct ImageBlock {
  std::shared_ptr<ImageBlocks> blocks;  // that it goes back to
  DeviceAddress address = 0;
  std::size_t size = 0;
  std::shared_ptr<const Event> end;  // of what writes it; nullptr: nothing does

  ImageBlock() = default;
  ~ImageBlock();
  ImageBlock(const ImageBlock&) = delete;
  ImageBlock& operator=(const ImageBlock&) = delete;
};

// Blocks go round: none goes back to CUDA, which would wait for the GPU, before there is no room or the last one of the
// loader's. Thread-safe.
class ImageBlocks : public std::enable_shared_from_this<ImageBlocks> {
 public:
  explicit ImageBlocks(std::shared_ptr<const Context> context) : context_(std::move(context)) {}
  ~ImageBlocks();
  ImageBlocks(const ImageBlocks&) = delete;
  ImageBlocks& operator=(const ImageBlocks&) = delete;

  // Room that this stream may write. kStorage with ENOMEM: the GPU has none; the message has its numbers.
  Result<std::shared_ptr<ImageBlock>> take(std::size_t bytes, StreamHandle stream);
  std::uint64_t held_bytes() const;  // of the GPU, with those that are free

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
