// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads FlatBuffers tables, as described at https://flatbuffers.dev/internals. Never reads out of bounds: a field that
// exceeds the bounds is treated as absent, and marks the buffer as damaged.
//
//     table    i32 distance back to its vtable, then its fields
//     vtable   u16 its size, u16 the table's size, u16 per field: its offset in the table, or 0 if absent
//     vector   u32 number of elements, then the elements
//     offsets  u32 forward from their own position

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace feedline::format {

// The bytes of a buffer, and whether any access was out of bounds. Must outlive its tables. Not thread-safe.
class FlatBuffer {
 public:
  explicit FlatBuffer(std::span<const std::byte> bytes) : bytes_(bytes) {}
  bool is_damaged() const { return damaged_; }
  std::size_t size() const { return bytes_.size(); }
  template <typename T>
  T load(std::uint64_t at) {
    T value{};
    if (at > bytes_.size() || bytes_.size() - at < sizeof(T)) {
      damaged_ = true;
      return value;
    }
    std::memcpy(&value, bytes_.data() + at, sizeof(T));
    return value;
  }
  bool has(std::uint64_t at, std::uint64_t bytes) {
    if (at <= bytes_.size() && bytes <= bytes_.size() - at) return true;
    damaged_ = true;
    return false;
  }
  std::span<const std::byte> bytes(std::uint64_t at, std::uint64_t count) {
    return has(at, count) ? bytes_.subspan(at, count) : std::span<const std::byte>();
  }

 private:
  std::span<const std::byte> bytes_;
  bool damaged_ = false;
};

// A vector whose elements have `stride` bytes.
struct FlatVector {
  FlatBuffer* buffer = nullptr;
  std::uint64_t begin = 0, size = 0, stride = 1;

  template <typename T>
  T load(std::uint64_t i, std::uint64_t inside = 0) const {
    return buffer->load<T>(begin + i * stride + inside);
  }
};

class FlatTable {
 public:
  FlatTable() = default;
  static FlatTable root(FlatBuffer& buffer) { return FlatTable(buffer, buffer.load<std::uint32_t>(0)); }

  bool is_there() const { return buffer_ != nullptr; }
  // Returns the value of a number field, or `otherwise` if the field is absent.
  template <typename T>
  T number(std::size_t field, T otherwise) const {
    const std::uint64_t at = location(field);
    return at == 0 ? otherwise : buffer_->load<T>(at);
  }
  FlatTable table(std::size_t field) const;
  std::string_view text(std::size_t field) const;
  // Requires: `stride` is the size of an element and not 0.
  FlatVector vector(std::size_t field, std::uint64_t stride) const;
  // Returns element `i` of a vector of tables.
  static FlatTable in(const FlatVector& vector, std::uint64_t i);

 private:
  FlatTable(FlatBuffer& buffer, std::uint64_t at);
  // Returns the position of a field, or 0 if the field is absent.
  std::uint64_t location(std::size_t field) const;
  // Returns the position that an offset field refers to, or 0 if the field is absent.
  std::uint64_t target(std::size_t field) const;

  FlatBuffer* buffer_ = nullptr;
  std::uint64_t at_ = 0, vtable_ = 0, vtable_bytes_ = 0;
};

}  // namespace feedline::format
