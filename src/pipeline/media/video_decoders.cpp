// SPDX-License-Identifier: Apache-2.0
#include "pipeline/media/video_decoders.h"

#include <algorithm>
#include <string>

namespace feedline::pipeline {

std::uint64_t decoder_bytes(const decode::VideoIndex& index) {
  constexpr std::uint64_t kFixed = 1 << 20, kFrames = 12, kRgb = 3;
  const auto pixels = static_cast<std::uint64_t>(index.width) * static_cast<std::uint64_t>(index.height);
  return kFixed + pixels * (kFrames * 3 / 2 + kRgb);
}

Result<VideoDecoders::Reserved> VideoDecoders::reserve(const decode::VideoIndex& index) {
  const std::uint64_t bytes = decoder_bytes(index);
  if (is_given_ && bytes > budget_)
    return config_error("decoding " + std::to_string(index.width) + " x " + std::to_string(index.height) +
                        " pixels takes about " + std::to_string(bytes) + " bytes, but decoder_budget is " +
                        std::to_string(budget_) + "; raise decoder_budget");
  std::unique_lock lock(mutex_);
  released_.wait(lock, [&] { return used_ == 0 || used_ + bytes <= budget_; });
  used_ += bytes;
  stats_.decoder_bytes_peak = std::max(stats_.decoder_bytes_peak, used_);
  return Reserved(*this, bytes);
}

void VideoDecoders::release(std::uint64_t bytes) {
  {
    const std::lock_guard lock(mutex_);
    used_ -= bytes;
  }
  released_.notify_all();  // smaller decoders may fit although a larger one does not
}

void VideoDecoders::count(const decode::ClipDecoder::Counts& before, const decode::ClipDecoder::Counts& after) {
  const std::lock_guard lock(mutex_);
  stats_.opens += after.opens - before.opens;
  stats_.open_s += static_cast<double>(after.open_ns - before.open_ns) * 1e-9;
  stats_.frames += after.frames - before.frames;
  stats_.bytes_fetched += after.bytes_fetched - before.bytes_fetched;
  stats_.bytes_used += after.bytes_used - before.bytes_used;
}

void VideoDecoders::count_bytes(std::uint64_t fetched, std::uint64_t used) {
  const std::lock_guard lock(mutex_);
  stats_.bytes_fetched += fetched;
  stats_.bytes_used += used;
}

VideoStats VideoDecoders::stats() const {
  const std::lock_guard lock(mutex_);
  VideoStats stats = stats_;
  stats.decoder_budget = budget_;
  return stats;
}

}  // namespace feedline::pipeline
