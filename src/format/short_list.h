// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <memory_resource>
#include <span>
#include <vector>

namespace feedline::format {

// A list with one item for each field of a sample. The list is stored on the stack unless there are unusually many
// fields.
template <typename T>
class ShortList {
 public:
  explicit ShortList(std::size_t size) : list_(size, &resource_) {}
  std::span<T> all() { return list_; }

 private:
  static constexpr std::size_t kUsual = 16;
  alignas(T) std::array<std::byte, kUsual * sizeof(T)> room_;
  std::pmr::monotonic_buffer_resource resource_{room_.data(), room_.size()};
  std::pmr::vector<T> list_;
};

}  // namespace feedline::format
