// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "device/cuda/copy_stream.h"
#include "device/cuda/image_blocks.h"
#include "device/cuda/jpeg_lane.h"
#include "device/cuda/pinned_allocator.h"
#include "device/image_decoder.h"

namespace feedline::device::cuda {

// Each decoding thread uses its own lane.
class JpegDecoder final : public ImageDecoder {
 public:
  // kConfig: nvJPEG is missing or cannot be initialized; the message suggests a fix.
  static Result<std::shared_ptr<JpegDecoder>> make(std::shared_ptr<const Context> context);

  Result<std::optional<std::uint64_t>> decode(std::span<const std::byte> file, Size size,
                                              const std::byte* row) override;
  Result<std::uint64_t> bring(std::span<const std::byte> bytes, const std::byte* row) override;
  Counts counts() const override;
  std::string name() const override;
  std::optional<Error> failure() const override;

  using Images = std::vector<std::shared_ptr<const ImageBlock>>;
  // Moves the images for the rows at these addresses to the caller, which must wait for the `end` event of each image.
  void take(const std::byte* first, std::size_t stride, std::uint64_t rows, Images& images);
  bool is_of(const Context& context) const { return context.index() == session_->context().index(); }

 private:
  JpegDecoder(std::shared_ptr<const JpegSession> session, std::shared_ptr<CopyStream> stream);
  Result<std::unique_ptr<JpegLane>> take_lane();
  Result<std::shared_ptr<ImageBlock>> begin(JpegLane& lane, std::span<const std::byte> file, Size size);
  Result<std::shared_ptr<ImageBlock>> copy(std::span<const std::byte> bytes);
  std::uint64_t put(const std::byte* row, std::shared_ptr<const ImageBlock> image);
  std::unexpected<Error> failed(Error error);

  const std::shared_ptr<const JpegSession> session_;
  const std::shared_ptr<CopyStream> stream_;  // for images from the host
  const std::shared_ptr<PinnedAllocator> pinned_;
  const std::shared_ptr<ImageBlocks> blocks_;
  std::atomic<std::uint64_t> decoded_ = 0, brought_ = 0;
  mutable std::mutex mutex_;                      // never held during calls to the driver or to nvJPEG
  std::vector<std::unique_ptr<JpegLane>> lanes_;  // unused ones
  std::unordered_map<const std::byte*, std::shared_ptr<const ImageBlock>> images_;  // by the row's address
  std::optional<Error> failure_;
};

}  // namespace feedline::device::cuda
