// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "device/resident_images.h"
#include "feedline/error.h"
#include "format/format.h"
#include "memory/record.h"
#include "transform/preparation.h"

namespace feedline::pipeline {

// Caches a dataset's images on a device, and all other fields in host memory, for this process only. Thread-safe.
class DevicePixels {
 public:
  DevicePixels(std::shared_ptr<device::ResidentImages> images, std::uint64_t samples);
  ~DevicePixels();
  DevicePixels(const DevicePixels&) = delete;
  DevicePixels& operator=(const DevicePixels&) = delete;

  // Returns how many bytes a dataset's images need on a device: exact if all have the same size, otherwise a slightly
  // high estimate from samples spread over the dataset. Reads these samples. Returns an error if no sample can be read.
  static Result<std::uint64_t> bytes_needed(const format::RecordFormat& records,
                                            const transform::Preparation& preparation);

  // Points `record` to a cached sample, valid as long as this object; an image's `data` is a device address. Returns
  // false if the sample is not cached.
  bool read(std::uint64_t sample, memory::Record& record) const;
  // Stores a prepared sample, whose fields are in host memory, and points `record` to the stored copy. kStorage: the
  // device is out of memory.
  Result<void> store(std::uint64_t sample, std::span<const format::FieldDescription> fields, memory::Record& record);

  std::uint64_t present() const { return present_.load(std::memory_order_relaxed); }
  std::uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }  // size of the cached images
  const std::shared_ptr<device::ResidentImages>& images() const { return images_; }

 private:
  struct Sample;
  Result<void> take_images(std::span<const format::FieldDescription> fields, Sample& cached);

  const std::shared_ptr<device::ResidentImages> images_;
  std::vector<std::atomic<const Sample*>> samples_;  // owned; nullptr if not cached yet
  std::array<std::mutex, 64> keeping_;               // sharded by sample number: only one thread stores a sample
  std::atomic<std::uint64_t> present_ = 0, bytes_ = 0;
};

}  // namespace feedline::pipeline
