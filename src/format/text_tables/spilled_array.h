// SPDX-License-Identifier: Apache-2.0
#pragma once

// Arrays that grow at their end, in memory or, if they are large, in a mapped file in the cache folder.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "feedline/error.h"
#include "storage/file_descriptor.h"

namespace feedline::format {

// Not thread-safe while it grows. The file has no name, and is deleted with this object. If the file cannot be written,
// or would use more than half of the free disk space, all bytes stay in memory.
class SpilledBytes {
 public:
  static constexpr std::size_t kMostInMemory = std::size_t{4} << 20;

  void append(std::span<const std::byte> bytes);
  // Makes bytes() valid until the next append().
  void seal();
  // Requires: seal() was called after the last append().
  std::span<const std::byte> bytes() const { return mapped_ ? std::span(mapped_.get(), size()) : std::span(memory_); }
  std::uint64_t size() const { return file_bytes_ + memory_.size(); }

 private:
  Result<void> create_file();
  Result<void> write_out();
  void take_back();

  std::vector<std::byte> memory_;  // the bytes after those in the file
  storage::FileDescriptor file_;
  std::string folder_;
  std::uint64_t file_bytes_ = 0, most_ = 0;  // most_: of the file
  bool stays_in_memory_ = false;
  std::shared_ptr<const std::byte> mapped_;  // of the whole file, after seal()
};

// An array of trivially copyable elements.
template <typename T>
class SpilledArray {
 public:
  void push_back(T value) { append({&value, 1}); }
  void append(std::span<const T> values) { bytes_.append(std::as_bytes(values)); }
  void seal() { bytes_.seal(); }
  std::size_t size() const { return static_cast<std::size_t>(bytes_.size() / sizeof(T)); }
  // Requires: seal() was called after the last append().
  std::span<const T> values() const { return {reinterpret_cast<const T*>(bytes_.bytes().data()), size()}; }
  const T& operator[](std::size_t i) const { return values()[i]; }

 private:
  SpilledBytes bytes_;
};

}  // namespace feedline::format
