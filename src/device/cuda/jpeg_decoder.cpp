// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/jpeg_decoder.h"

#include <cstring>
#include <utility>

#include "memory/allocator.h"

namespace feedline::device::cuda {

Result<std::shared_ptr<JpegDecoder>> JpegDecoder::make(std::shared_ptr<const Context> context) {
  FEEDLINE_TRY(auto library, JpegLibrary::open(context->driver()));
  auto session = JpegSession::make(context, std::move(library));
  if (!session) return config_error("decode(device=\"cuda\"): nvJPEG cannot be initialized: " + session.error().what);
  FEEDLINE_TRY(auto stream, CopyStream::make(std::move(context)));
  return std::shared_ptr<JpegDecoder>(new JpegDecoder(std::move(*session), std::move(stream)));
}

JpegDecoder::JpegDecoder(std::shared_ptr<const JpegSession> session, std::shared_ptr<CopyStream> stream)
    : session_(std::move(session)),
      stream_(std::move(stream)),
      pinned_(std::make_shared<PinnedAllocator>(session_->shared_context(),
                                                [weak = std::weak_ptr<CopyStream>(stream_)] {
                                                  if (const auto alive = weak.lock()) alive->sweep();
                                                })),
      blocks_(std::make_shared<ImageBlocks>(session_->shared_context())) {}

// Records a GPU error, which the sample did not cause.
std::unexpected<Error> JpegDecoder::failed(Error error) {
  const std::lock_guard lock(mutex_);
  if (!failure_) failure_ = error;
  return std::unexpected(std::move(error));
}

Result<std::unique_ptr<JpegLane>> JpegDecoder::take_lane() {
  {
    const std::lock_guard lock(mutex_);
    if (!lanes_.empty()) {
      auto lane = std::move(lanes_.back());
      lanes_.pop_back();
      return lane;
    }
  }
  return JpegLane::make(session_);
}

// Returns nullptr if nvJPEG does not support the file.
Result<std::shared_ptr<ImageBlock>> JpegDecoder::begin(JpegLane& lane, std::span<const std::byte> file, Size size) {
  FEEDLINE_TRY(const bool is_read, lane.read(file, size));
  if (!is_read) return nullptr;
  const std::size_t bytes = static_cast<std::size_t>(size.width) * static_cast<std::size_t>(size.height) * 3;
  FEEDLINE_TRY(auto image, blocks_->take(bytes, lane.stream()));
  FEEDLINE_TRY(image->end, lane.write(image->address, size));
  return image;
}

Result<std::optional<std::uint64_t>> JpegDecoder::decode(std::span<const std::byte> file, Size size,
                                                         const std::byte* row) {
  auto lane = take_lane();
  if (!lane) return failed(std::move(lane).error());
  auto image = begin(**lane, file, size);
  if (!image) return failed(std::move(image).error());  // and the lane is dropped
  {
    const std::lock_guard lock(mutex_);
    lanes_.push_back(std::move(*lane));
  }
  if (!*image) return std::nullopt;
  decoded_.fetch_add(1, std::memory_order_relaxed);
  return put(row, std::move(*image));
}

Result<std::shared_ptr<ImageBlock>> JpegDecoder::copy(std::span<const std::byte> bytes) {
  FEEDLINE_TRY(auto staged, memory::Lease::take(pinned_, bytes.size()));
  std::memcpy(staged->data(), bytes.data(), bytes.size());
  FEEDLINE_TRY(auto image, blocks_->take(staged->bytes(), stream_->handle()));
  FEEDLINE_TRY(image->end, stream_->copy(std::move(staged), reinterpret_cast<std::byte*>(image->address)));
  return image;
}

Result<std::uint64_t> JpegDecoder::bring(std::span<const std::byte> bytes, const std::byte* row) {
  auto image = copy(bytes);
  if (!image) return failed(std::move(image).error());
  brought_.fetch_add(1, std::memory_order_relaxed);
  return put(row, std::move(*image));
}

std::uint64_t JpegDecoder::put(const std::byte* row, std::shared_ptr<const ImageBlock> image) {
  const std::uint64_t address = image->address;
  const std::lock_guard lock(mutex_);
  std::swap(images_[row], image);
  return address;  // the previous image is freed outside the lock
}

void JpegDecoder::take(const std::byte* first, std::size_t stride, std::uint64_t rows, Images& images) {
  const std::lock_guard lock(mutex_);
  for (std::uint64_t i = 0; i < rows; ++i)
    if (auto found = images_.extract(first + i * stride)) images.push_back(std::move(found.mapped()));
}

ImageDecoder::Counts JpegDecoder::counts() const {
  return {decoded_.load(std::memory_order_relaxed), brought_.load(std::memory_order_relaxed)};
}

std::string JpegDecoder::name() const { return "nvJPEG " + session_->library().version(); }

std::optional<Error> JpegDecoder::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

}  // namespace feedline::device::cuda
