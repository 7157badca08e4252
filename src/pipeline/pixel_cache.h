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
#include "pipeline/device_pixels.h"
#include "transform/preparation.h"

namespace feedline::device {
class Device;
}

namespace feedline::pipeline {

// The pixels that Dataset::cache keeps: in memory, in a file, or on devices, each of which has a cache of its own:
// on(). Datasets and loaders made from it share one. Thread-safe; open() before what says so.
class PixelCache {
 public:
  // kConfig: see Dataset::cache. Touches neither memory nor disk.
  static Result<std::shared_ptr<PixelCache>> make(const std::string& where, std::uint64_t budget,
                                                  const std::string& dataset, const format::RecordFormat& format,
                                                  std::uint64_t fingerprint, std::span<const Operation> operations);

  // Finds or makes the place where the pixels are. Again: does nothing. kConfig, kData, kStorage: see pixel_file.h.
  Result<void> open();

  // "device": of loaders alone. It is nowhere until it is asked for on a device.
  bool is_on_device() const { return where_ == "device"; }
  // The cache on that device, which is open; the first time room for all images is taken there. kConfig: the device has
  // no memory of its own, or no kernels, or not enough room for the dataset or under the budget. Requires:
  // is_on_device(); the records that this was made for.
  Result<std::shared_ptr<PixelCache>> on(device::Device& device, const format::RecordFormat& records);

  const std::shared_ptr<const transform::Preparation>& preparation() const { return preparation_; }
  const std::string& where() const { return where_; }

  // After open(). A kept sample, as views that stay as long as this object; false: it is not there.
  Result<bool> read(std::uint64_t sample, memory::Record& record) const {
    return on_device_ ? on_device_->read(sample, record) : store_->read(sample, record);
  }
  // Is it worth making the whole of a sample that is not there?
  bool is_open_for_more() const {
    return (on_device_ || !store_->is_full()) && !failed_.load(std::memory_order_relaxed);
  }
  // Keeps a record (format::PixelRecordBuilder). What goes wrong is failure(): the sample itself is fine.
  void keep(std::uint64_t sample, std::span<const std::byte> record);
  // On a device: as DevicePixels::keep(). What goes wrong is failure() too.
  Result<void> keep_on_device(std::uint64_t sample, memory::Record& record);
  std::shared_ptr<device::KeptImages> device_images() const { return on_device_ ? on_device_->images() : nullptr; }
  // Why nothing more can be kept, such as a full disk: for the training loop to hear of, whatever it does about bad
  // samples.
  std::optional<Error> failure() const;

  CacheStats stats() const;
  std::string explain() const;  // in a line

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
  mutable std::mutex mutex_;  // guards what follows; store_ is only set once
  std::optional<Error> failure_;
  std::map<std::string, std::shared_ptr<PixelCache>, std::less<>> devices_;  // by name
  std::unique_ptr<format::PixelMemory> memory_;
  std::unique_ptr<format::PixelStore> file_;
  format::PixelStore* store_ = nullptr;  // of one of the two
  // Of a cache on a device, which has none of the others; set before anybody else has it.
  std::unique_ptr<DevicePixels> on_device_;
  std::string device_;  // its name
};

}  // namespace feedline::pipeline
