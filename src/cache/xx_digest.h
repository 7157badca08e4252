// SPDX-License-Identifier: Apache-2.0
#pragma once

// The xxHash digests that other programs store with their files.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace feedline::cache {

enum class XxKind : std::uint8_t { kXxh32, kXxh64, kXxh3Of64, kXxh3Of128 };

// Hashes consecutive chunks with seed 0. Not thread-safe.
class XxDigest {
 public:
  explicit XxDigest(XxKind kind);
  ~XxDigest();
  XxDigest(XxDigest&&) noexcept;
  XxDigest& operator=(XxDigest&&) noexcept;
  void add(std::span<const std::byte> bytes);
  std::string hex() const;  // of all bytes so far, most significant digit first

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace feedline::cache
