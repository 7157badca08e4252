// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
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
#include "transform/preparation.h"

namespace feedline::pipeline {

// The pixels that Dataset::cache keeps: in memory, or in a file. Datasets and loaders made from it share one.
// Thread-safe; open() before what says so.
class PixelCache {
 public:
  // kConfig: see Dataset::cache. Touches neither memory nor disk.
  static Result<std::shared_ptr<PixelCache>> make(const std::string& where, std::uint64_t budget,
                                                  const std::string& dataset, const format::RecordFormat& format,
                                                  std::uint64_t fingerprint, std::span<const Operation> operations);

  // Finds or makes the place where the pixels are. Again: does nothing. kConfig, kData, kStorage: see pixel_file.h.
  Result<void> open();

  const std::shared_ptr<const transform::Preparation>& preparation() const { return preparation_; }
  const std::string& where() const { return where_; }

  // After open(). A kept sample, as views that stay as long as this object; false: it is not there.
  Result<bool> read(std::uint64_t sample, memory::Record& record) const { return store_->read(sample, record); }
  // Is it worth making the whole of a sample that is not there?
  bool is_open_for_more() const { return !store_->is_full() && !failed_.load(std::memory_order_relaxed); }
  // Keeps a record (format::PixelRecordBuilder). What goes wrong is failure(): the sample itself is fine.
  void keep(std::uint64_t sample, std::span<const std::byte> record);
  // Why nothing more can be kept, such as a full disk: for the training loop to hear of, whatever it does about bad
  // samples.
  std::optional<Error> failure() const;

  CacheStats stats() const;
  std::string explain() const;  // in a line

 private:
  PixelCache(std::string where, std::uint64_t budget, format::PixelContents contents,
             std::shared_ptr<const transform::Preparation> preparation);
  bool in_memory() const { return where_ == "memory"; }

  const std::string where_;
  const std::uint64_t budget_;
  const format::PixelContents contents_;
  const std::shared_ptr<const transform::Preparation> preparation_;
  std::atomic<bool> failed_ = false;
  mutable std::mutex mutex_;  // guards what follows; store_ is only set once
  std::optional<Error> failure_;
  std::unique_ptr<format::PixelMemory> memory_;
  std::unique_ptr<format::PixelStore> file_;
  format::PixelStore* store_ = nullptr;  // of one of the two
};

}  // namespace feedline::pipeline
