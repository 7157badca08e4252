// SPDX-License-Identifier: Apache-2.0
#pragma once

// Images cached on a GPU.

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "device/cuda/context.h"
#include "device/cuda/copy_stream.h"
#include "device/cuda/pinned_allocator.h"
#include "device/resident_images.h"

namespace feedline::device::cuda {

// Images are copied on the store's own stream, which all loaders of the GPU share.
class ImageStore final : public ResidentImages {
 public:
  // Allocates all memory at once. kConfig: out of memory; the message reports the sizes and suggests a fix.
  static Result<std::shared_ptr<ImageStore>> make(std::shared_ptr<const Context> context, std::uint64_t bytes);
  ~ImageStore() override;

  Result<std::uint64_t> store(std::span<const std::byte> pixels) override;
  std::uint64_t bytes() const override { return bytes_.load(std::memory_order_relaxed); }
  // Makes later work on `stream` wait for all images stored so far.
  Result<void> let_wait(StreamHandle stream) const;
  bool is_of(const Context& context) const { return context.index() == context_->index(); }

 private:
  ImageStore(std::shared_ptr<const Context> context, std::shared_ptr<CopyStream> stream);
  Result<void> grow(std::uint64_t bytes);

  const std::shared_ptr<const Context> context_;
  const std::shared_ptr<CopyStream> stream_;
  const std::shared_ptr<PinnedAllocator> pinned_;
  std::atomic<std::uint64_t> bytes_ = 0;  // of all blocks
  mutable std::mutex mutex_;
  std::vector<DeviceAddress> blocks_;
  DeviceAddress next_ = 0;             // position of the next image in the last block
  std::uint64_t left_ = 0;             // bytes left after it
  std::shared_ptr<const Event> last_;  // of the last copy; nullptr if there was none
};

}  // namespace feedline::device::cuda
