// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "feedline/error.h"
#include "storage/reader.h"

namespace feedline::format {

// Reads pages of a file, with one read for neighbouring pages.
class PageReader {
 public:
  PageReader(const storage::Reader& reader, std::uint64_t page_bytes, bool is_remote)
      : reader_(reader), page_bytes_(page_bytes), is_remote_(is_remote) {}

  // Reads these pages, which may be in any order. Fails with kStorage if the file has become shorter.
  Result<void> read(std::span<const std::uint64_t> pages);
  // Returns page number `i` in the list of the last read(). The page is valid until the next read().
  std::span<const std::byte> page(std::size_t i) const {
    return std::span(room_).subspan(i * page_bytes_, page_bytes_);
  }

 private:
  struct Range {
    std::size_t begin, end;  // in the order of the sorted pages
  };
  std::vector<Range> ranges_of(std::span<const std::uint64_t> pages);
  Result<char> read_range(std::span<const std::uint64_t> pages, Range range);

  const storage::Reader& reader_;
  const std::uint64_t page_bytes_;
  const bool is_remote_;
  std::vector<std::size_t> sorted_;
  std::vector<std::byte> room_;
};

}  // namespace feedline::format
