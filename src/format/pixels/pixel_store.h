// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cache/file_lock.h"
#include "feedline/error.h"
#include "format/pixels/pixel_layout.h"
#include "memory/record.h"

namespace feedline::format {

// A pixel file (pixel_layout.h), mapped: samples are read as views of it, and those that are not there yet are added.
// Thread-safe, and safe with other processes that have the same file open on this machine. A view is valid as long as
// the store.
class PixelStore {
 public:
  enum class Kind : std::uint8_t {
    kMemory,    // written by processes that run: nothing can have damaged it
    kFilling,   // a damaged record, as a power cut leaves it, counts as not there
    kFinished,  // every sample is there; a damaged record is an error, nothing is written
  };

  struct Extent {
    std::uint64_t mapped = 0;    // bytes of the file, as it is or may become, that can be read
    std::uint64_t capacity = 0;  // bytes that this process lets it grow to
  };
  // Requires: the file is open for writing unless kFinished, and kFilling: locked.
  static Result<std::unique_ptr<PixelStore>> map(cache::LockedFile file, std::string name, Kind kind, Extent extent);
  ~PixelStore();
  PixelStore(const PixelStore&) = delete;
  PixelStore& operator=(const PixelStore&) = delete;

  const PixelContents& contents() const { return contents_; }
  const std::string& name() const { return name_; }
  // The whole record of a sample; empty: it is not there. kData: it is damaged. kStorage: it cannot be read.
  Result<std::span<const std::byte>> find(std::uint64_t sample);
  // find(), read into `record`; false: it is not there.
  Result<bool> read(std::uint64_t sample, memory::Record& record);
  // Adds a record, unless it is there by now, or would go over the capacity: is_full() from then on. true: it was the
  // last one that was missing. A child after fork() adds nothing to a file that is filled: the lock is its parent's.
  // kStorage: it cannot be written, such as when the disk is full. Requires: not kFinished.
  Result<bool> add(std::uint64_t sample, std::span<const std::byte> record);

  bool is_full() const { return full_.load(std::memory_order_relaxed); }
  std::uint64_t present() const;
  bool is_complete() const { return present() == contents_.samples; }
  std::uint64_t bytes() const;  // of the records
  std::uint64_t capacity() const { return extent_.capacity; }
  Where where(std::uint64_t sample) const;

  // Makes the file one that is opened as kFinished, on the device. Requires: kFilling. Once.
  Result<void> finish();

 private:
  PixelStore(cache::LockedFile file, std::string name, Kind kind, Extent extent);
  Result<void> map_all();
  Result<void> check_index() const;
  std::atomic_ref<std::uint64_t> entry(std::uint64_t sample) const;
  Result<std::uint64_t> readable_bytes() const;
  Result<std::span<const std::byte>> framed(std::uint64_t sample, std::uint64_t offset, std::uint64_t limit) const;
  Result<void> bring_in(std::uint64_t offset, std::uint64_t bytes) const;
  Error damaged(std::uint64_t sample, std::uint64_t offset, const std::string& how) const;
  std::uint64_t claim(std::uint64_t bytes);

  const cache::LockedFile file_;
  const std::string name_;
  const Kind kind_;
  const Extent extent_;
  PixelContents contents_;
  PixelHead* head_ = nullptr;        // the mapped head, contents and index
  std::uint64_t* index_ = nullptr;   // in it
  std::uint64_t data_offset_ = 0;    // the part before it is mapped by itself: only that is written in place
  const std::byte* data_ = nullptr;  // the mapped records; data_[0] is at data_offset_
  std::atomic<bool> full_ = false;
  std::vector<std::atomic<std::uint64_t>> verified_;  // a bit per sample; none of kMemory
};

}  // namespace feedline::format
