// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "feedline/loader.h"
#include "feedline/operation.h"
#include "format/format.h"
#include "format/pixels/pixel_memory.h"
#include "format/pixels/pixel_store.h"
#include "memory/record.h"
#include "pipeline/fields/device_pixels.h"
#include "transform/preparation.h"

namespace feedline::device {
class Device;
}

namespace feedline::pipeline {

// The pixels that Dataset::cache stores: in memory, in a file, or on devices. on() returns the separate cache of each
// device. All datasets and loaders that are derived from the cached dataset share these pixels. Thread-safe; some
// functions require that open() has succeeded.
class PixelCache {
 public:
  // kConfig: see Dataset::cache. Accesses neither memory nor disk.
  static Result<std::shared_ptr<PixelCache>> make(const std::string& where, std::uint64_t budget,
                                                  const std::string& dataset, const format::RecordFormat& format,
                                                  std::uint64_t fingerprint, std::span<const Operation> operations);

  // Opens or creates the storage of the pixels. Does nothing if the storage is already open. kConfig, kData, kStorage:
  // see pixel_file.h.
  Result<void> open();

  // Caches with the location "device" are only for loaders. No memory is allocated until on() is called.
  bool is_on_device() const { return where_ == "device"; }
  // Returns the open cache on that device; the first call allocates memory for all images. kConfig: the device has no
  // memory or no kernels, or the dataset exceeds the device's memory or the budget. Requires: is_on_device(), and
  // `records` are those that this cache was made for.
  Result<std::shared_ptr<PixelCache>> on(device::Device& device, const format::RecordFormat& records);

  const std::shared_ptr<const transform::Preparation>& preparation() const { return preparation_; }
  const std::string& where() const { return where_; }

  // Call after open(). Points `record` to a cached sample, valid as long as this object; returns false if the sample is
  // not cached.
  Result<bool> read(std::uint64_t sample, memory::Record& record) const {
    return on_device_ ? on_device_->read(sample, record) : store_->read(sample, record);
  }
  // Returns whether storing more samples can succeed, so that preparing a whole sample is worthwhile.
  bool is_open_for_more() const {
    return (on_device_ || !store_->is_full()) && !failed_.load(std::memory_order_relaxed);
  }
  // Stores a record (format::PixelRecordBuilder). Errors are reported by failure(), because the sample itself is valid.
  void store(std::uint64_t sample, std::span<const std::byte> record);
  // For a cache on a device; see DevicePixels::store(). Errors are also reported by failure().
  Result<void> store_on_device(std::uint64_t sample, memory::Record& record);
  std::shared_ptr<device::ResidentImages> device_images() const { return on_device_ ? on_device_->images() : nullptr; }
  // Returns the reason why the cache cannot store more pixels, such as a full disk. This error is reported to the
  // training loop, whatever its policy for bad samples.
  std::optional<Error> failure() const;

  CacheStats stats() const;
  std::string explain() const;  // one line

 private:
  PixelCache(std::string where, std::uint64_t budget, format::PixelContents contents,
             std::shared_ptr<const transform::Preparation> preparation);
  bool in_memory() const { return where_ == "memory"; }
  void fail(Error error);

  const std::string where_;
  const std::uint64_t budget_;
  const format::PixelContents contents_;
  const std::shared_ptr<const transform::Preparation> preparation_;
  std::atomic<bool> failed_ = false;
  mutable std::mutex mutex_;  // guards the members below; store_ is set only once
  std::optional<Error> failure_;
  std::map<std::string, std::shared_ptr<PixelCache>, std::less<>> devices_;  // by name
  std::unique_ptr<format::PixelMemory> memory_;
  std::unique_ptr<format::PixelStore> file_;
  format::PixelStore* store_ = nullptr;  // points to memory_ or file_
  // Used for a cache on a device, which uses none of the other members; set before the cache is shared.
  std::unique_ptr<DevicePixels> on_device_;
  std::string device_;  // its name
};

}  // namespace feedline::pipeline
