// SPDX-License-Identifier: Apache-2.0
#pragma once

// The video decoders of a loader's threads: bounds the memory of those that are open at once, and counts their work.

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <utility>

#include "decode/video/clip_decoder.h"
#include "decode/video/video_index.h"
#include "feedline/error.h"
#include "feedline/loader.h"

namespace feedline::pipeline {

// The estimated memory of a decoder of 8-bit video, which holds up to 16 frames of reference and output.
std::uint64_t decoder_bytes(const decode::VideoIndex& index);

// Thread-safe.
class VideoDecoders {
 public:
  // budget: bytes; 0: 256 MB, or one decoder if that is more.
  explicit VideoDecoders(std::uint64_t budget) : budget_(budget == 0 ? kUsual : budget), is_given_(budget != 0) {}

  // Memory that is reserved for a decoder.
  class Reserved {
   public:
    Reserved() = default;
    Reserved(VideoDecoders& owner, std::uint64_t bytes) : owner_(&owner), bytes_(bytes) {}
    Reserved(Reserved&& other) noexcept : owner_(std::exchange(other.owner_, nullptr)), bytes_(other.bytes_) {}
    Reserved& operator=(Reserved&& other) noexcept {
      std::swap(owner_, other.owner_);
      std::swap(bytes_, other.bytes_);
      return *this;
    }
    ~Reserved() {
      if (owner_ != nullptr) owner_->release(bytes_);
    }

   private:
    VideoDecoders* owner_ = nullptr;
    std::uint64_t bytes_ = 0;
  };
  // Waits until other threads have released enough memory. A thread must not hold another reservation. kConfig: the
  // decoder needs more than the budget.
  Result<Reserved> reserve(const decode::VideoIndex& index);
  void count(const decode::ClipDecoder::Counts& before, const decode::ClipDecoder::Counts& after);
  // Counts bytes that were read for the sound of clips.
  void count_bytes(std::uint64_t fetched, std::uint64_t used);
  VideoStats stats() const;

 private:
  static constexpr std::uint64_t kUsual = 256'000'000;
  void release(std::uint64_t bytes);

  const std::uint64_t budget_;
  const bool is_given_;
  mutable std::mutex mutex_;
  std::condition_variable released_;
  std::uint64_t used_ = 0;
  VideoStats stats_;
};

}  // namespace feedline::pipeline
