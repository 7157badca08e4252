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

// A memory-mapped pixel file (pixel_layout.h). Samples are read as views of the file, and missing samples can be added.
// Can be used concurrently by threads, and by processes on this machine that have the same file open. Views are valid
// as long as the store.
class PixelStore {
 public:
  enum class Kind : std::uint8_t {
    kMemory,    // written only by running processes, so it cannot be damaged
    kFilling,   // a damaged record, for example after a power failure, is treated as missing
    kFinished,  // complete and read-only; a damaged record is an error
  };

  struct Extent {
    std::uint64_t mapped = 0;    // readable bytes of the file, now or after it grows
    std::uint64_t capacity = 0;  // maximum size to which this process lets the file grow
  };
  // Requires: the file is open for writing unless `kind` is kFinished, and locked if it is kFilling.
  static Result<std::unique_ptr<PixelStore>> map(cache::LockedFile file, std::string name, Kind kind, Extent extent);
  ~PixelStore();
  PixelStore(const PixelStore&) = delete;
  PixelStore& operator=(const PixelStore&) = delete;

  const PixelContents& contents() const { return contents_; }
  const std::string& name() const { return name_; }
  // Returns the whole record of a sample, or an empty span if it is missing. Fails with kData if the record is damaged,
  // and with kStorage if it cannot be read.
  Result<std::span<const std::byte>> find(std::uint64_t sample);
  // Finds a record and decodes it into `record`. Returns false if the record is missing.
  Result<bool> read(std::uint64_t sample, memory::Record& record);
  // Adds a record, unless it already exists or would exceed the capacity. If the capacity would be exceeded, is_full()
  // becomes true. Returns true if this was the last missing record. After fork(), a child does not add records to a
  // file, because its parent has the lock. Fails with kStorage if the record cannot be written, for example because the
  // disk is full. Requires: the kind is not kFinished.
  Result<bool> add(std::uint64_t sample, std::span<const std::byte> record);

  bool is_full() const { return full_.load(std::memory_order_relaxed); }
  std::uint64_t present() const;
  bool is_complete() const { return present() == contents_.samples; }
  std::uint64_t bytes() const;  // of the records
  std::uint64_t capacity() const { return extent_.capacity; }
  Where where(std::uint64_t sample) const;

  // Writes the file to the device and marks it as complete, so that it can be opened as kFinished. Call once. Requires:
  // kFilling.
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
  std::uint64_t* index_ = nullptr;   // inside head_
  std::uint64_t data_offset_ = 0;    // mapped separately up to here, because only this part is written in place
  const std::byte* data_ = nullptr;  // the mapped records; data_[0] is at data_offset_
  std::atomic<bool> full_ = false;
  std::vector<std::atomic<std::uint64_t>> verified_;  // one bit per sample; empty for kMemory
};

}  // namespace feedline::format
