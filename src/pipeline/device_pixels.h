// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "device/kept_images.h"
#include "feedline/error.h"
#include "format/format.h"
#include "memory/record.h"
#include "transform/preparation.h"

namespace feedline::pipeline {

// The samples of a dataset whose images a device keeps: the images there, all else here. Of this process alone.
// Thread-safe.
class DevicePixels {
 public:
  DevicePixels(std::shared_ptr<device::KeptImages> images, std::uint64_t samples);
  ~DevicePixels();
  DevicePixels(const DevicePixels&) = delete;
  DevicePixels& operator=(const DevicePixels&) = delete;

  // What the images of a dataset will take on a device: exactly, where all come out in one size, else a little more
  // than samples from all over it say. Reads these. An error: none of them can be read.
  static Result<std::uint64_t> bytes_needed(const format::RecordFormat& records,
                                            const transform::Preparation& preparation);

  // Views of a kept sample, that stay as long as this object; of an image `data` is an address on the device. false: it
  // is not there.
  bool read(std::uint64_t sample, memory::Record& record) const;
  // Keeps a prepared sample, whose fields lie in the host's memory; `record` then looks at what is kept. kStorage: the
  // device has no more room.
  Result<void> keep(std::uint64_t sample, std::span<const format::FieldDescription> fields, memory::Record& record);

  std::uint64_t present() const { return present_.load(std::memory_order_relaxed); }
  std::uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }  // of the images that are there
  const std::shared_ptr<device::KeptImages>& images() const { return images_; }

 private:
  struct Sample;
  Result<void> take_images(std::span<const format::FieldDescription> fields, Sample& kept);

  const std::shared_ptr<device::KeptImages> images_;
  std::vector<std::atomic<const Sample*>> samples_;  // owned; nullptr: not there yet
  std::array<std::mutex, 64> keeping_;               // of samples, by number: one thread keeps a sample
  std::atomic<std::uint64_t> present_ = 0, bytes_ = 0;
};

}  // namespace feedline::pipeline
