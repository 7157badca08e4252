// SPDX-License-Identifier: Apache-2.0
#pragma once

// The chunks of a regular grid that a box touches, and the copy from a chunk to the box.

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "feedline/array.h"
#include "feedline/error.h"
#include "memory/strided_copy.h"

namespace feedline::format {

using Indexes = std::array<std::int64_t, Shape::kMaxDims>;

// A box of an array, and its destination in C order.
struct BoxCopy {
  std::span<const std::int64_t> begin, size;
  std::byte* out = nullptr;
  std::size_t element = 1;
  memory::Strides strides{};  // of `out`

  BoxCopy(std::span<const std::int64_t> box_begin, std::span<const std::int64_t> box_size, std::byte* to,
          std::size_t bytes)
      : begin(box_begin), size(box_size), out(to), element(bytes), strides(memory::c_strides(box_size, bytes)) {}

  // The part of the box inside [low, low + extents): its size, and its first element in both. Returns false if there is
  // none.
  struct Part {
    Indexes size{}, first{};  // first: in the array
  };
  bool part_in(const Indexes& low, const Shape& extents, Part& part) const {
    for (std::size_t i = 0; i < size.size(); ++i) {
      part.first[i] = std::max(begin[i], low[i]);
      part.size[i] = std::min(begin[i] + size[i], low[i] + extents[i]) - part.first[i];
      if (part.size[i] <= 0) return false;
    }
    return true;
  }
  std::byte* destination(const Part& part) const {
    std::ptrdiff_t offset = 0;
    for (std::size_t i = 0; i < size.size(); ++i) offset += (part.first[i] - begin[i]) * strides[i];
    return out + offset;
  }
  // chunk: the elements of the chunk at `low`, with these strides.
  void copy(const Part& part, const Indexes& low, const std::byte* chunk, const memory::Strides& chunk_strides) const {
    const std::size_t dims = size.size();
    std::ptrdiff_t offset = 0;
    for (std::size_t i = 0; i < dims; ++i) offset += (part.first[i] - low[i]) * chunk_strides[i];
    memory::copy_strided(chunk + offset, std::span(chunk_strides).first(dims), destination(part),
                         std::span(strides).first(dims), std::span(part.size).first(dims), element);
  }
  void fill(const Part& part, const Element& value) const {
    const std::size_t dims = size.size();
    memory::Strides none{};
    memory::copy_strided(value.data(), std::span(none).first(dims), destination(part), std::span(strides).first(dims),
                         std::span(part.size).first(dims), element);
  }
};

// Calls use(indexes of the chunk) for all chunks of the grid that the box touches; stops at an error.
template <typename Use>
Result<void> for_chunks(std::span<const std::int64_t> begin, std::span<const std::int64_t> size, const Shape& chunk,
                        Use use) {
  const std::size_t dims = size.size();
  Indexes first{}, last{}, at{};
  for (std::size_t i = 0; i < dims; ++i) {
    at[i] = first[i] = begin[i] / chunk[i];
    last[i] = (begin[i] + size[i] - 1) / chunk[i];
  }
  while (true) {
    FEEDLINE_CHECK_OK(use(static_cast<const Indexes&>(at)));
    std::size_t i = dims;
    while (i > 0 && at[i - 1] == last[i - 1]) {
      --i;
      at[i] = first[i];
    }
    if (i == 0) return {};
    ++at[i - 1];
  }
}

}  // namespace feedline::format
