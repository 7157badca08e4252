// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/image_store.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <tuple>
#include <utility>

#include "memory/allocator.h"

namespace feedline::device::cuda {
namespace {

constexpr std::uint64_t kAlignment = 256;                  // of an image
constexpr std::uint64_t kGrowth = std::uint64_t{8} << 20;  // if more is stored than was reserved

std::uint64_t aligned(std::uint64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

std::string shown(std::uint64_t bytes) {
  constexpr double kGiB = 1 << 30, kMiB = 1 << 20;
  const double number = static_cast<double>(bytes);
  char text[32];
  std::snprintf(text, sizeof text, number < kGiB ? "%.1f MiB" : "%.2f GiB", number / (number < kGiB ? kMiB : kGiB));
  return text;
}

}  // namespace

ImageStore::ImageStore(std::shared_ptr<const Context> context, std::shared_ptr<CopyStream> stream)
    : context_(std::move(context)),
      stream_(std::move(stream)),
      pinned_(std::make_shared<PinnedAllocator>(context_, [weak = std::weak_ptr<CopyStream>(stream_)] {
        if (const auto alive = weak.lock()) alive->sweep();
      })) {}

Result<std::shared_ptr<ImageStore>> ImageStore::make(std::shared_ptr<const Context> context, std::uint64_t bytes) {
  std::size_t left = 0, all = 0;
  const bool is_known = context->call("cuMemGetInfo", context->calls().memory_info, &left, &all).has_value();
  if (is_known && bytes > left)
    return config_error("the images need " + shown(bytes) + ", but " + context->name() + " (cuda:" +
                        std::to_string(context->index()) + ") has " + shown(left) + " of " + shown(all) + " free");
  FEEDLINE_TRY(auto stream, CopyStream::make(context));
  std::shared_ptr<ImageStore> store(new ImageStore(std::move(context), std::move(stream)));
  FEEDLINE_CHECK_OK(store->grow(std::max(bytes, kAlignment)));
  return store;
}

// CUDA frees memory only when no started work uses it.
ImageStore::~ImageStore() {
  if (context_->driver().is_of_a_parent()) return;
  for (const DeviceAddress block : blocks_) std::ignore = context_->call("cuMemFree", context_->calls().free, block);
}

Result<void> ImageStore::grow(std::uint64_t bytes) {
  DeviceAddress block = 0;
  if (auto got = context_->call("cuMemAlloc", context_->calls().alloc, &block, static_cast<std::size_t>(bytes)); !got) {
    Error error = std::move(got).error();
    error.what = context_->name() + " (cuda:" + std::to_string(context_->index()) + ") has no room for " +
                 shown(bytes) + " of images in addition to the " + shown(this->bytes()) +
                 " already in use: " + error.what;
    return std::unexpected(std::move(error));
  }
  blocks_.push_back(block);
  next_ = block;
  left_ = bytes;
  bytes_.fetch_add(bytes, std::memory_order_relaxed);
  return {};
}

Result<std::uint64_t> ImageStore::store(std::span<const std::byte> pixels) {
  FEEDLINE_TRY(auto staged, memory::Lease::take(pinned_, pixels.size()));
  std::memcpy(staged->data(), pixels.data(), pixels.size());
  const std::uint64_t size = aligned(pixels.size());
  const std::lock_guard lock(mutex_);  // also held for the copy, so that `last_` is the last one
  if (size > left_) FEEDLINE_CHECK_OK(grow(std::max(size, kGrowth)));
  FEEDLINE_TRY(last_, stream_->copy(std::move(staged), reinterpret_cast<std::byte*>(next_)));
  left_ -= size;
  return std::exchange(next_, next_ + size);
}

Result<void> ImageStore::let_wait(StreamHandle stream) const {
  std::shared_ptr<const Event> last;
  {
    const std::lock_guard lock(mutex_);
    last = last_;
  }
  return last ? last->let_wait(stream) : Result<void>();
}

}  // namespace feedline::device::cuda
