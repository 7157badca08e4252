// SPDX-License-Identifier: Apache-2.0
#include "format/lmdb/page_reader.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "format/shards/each_shard.h"

namespace feedline::format {

std::vector<PageReader::Range> PageReader::ranges_of(std::span<const std::uint64_t> pages) {
  // Over a network, reading a few unnecessary pages is faster than a separate request. Larger gaps would include
  // values.
  constexpr std::uint64_t kMostGap = 256 << 10, kMostBytes = 1 << 20;
  const std::uint64_t gap = std::min<std::uint64_t>(reader_.worthwhile_bytes(), kMostGap) / page_bytes_;
  const std::uint64_t most = kMostBytes / page_bytes_;
  sorted_.resize(pages.size());
  std::iota(sorted_.begin(), sorted_.end(), 0);
  std::ranges::sort(sorted_, {}, [&](std::size_t i) { return pages[i]; });
  std::vector<Range> ranges;
  for (std::size_t i = 0; i < sorted_.size(); ++i) {
    const std::uint64_t page = pages[sorted_[i]];
    if (!ranges.empty() && page - pages[sorted_[i - 1]] <= gap + 1 && page - pages[sorted_[ranges.back().begin]] < most)
      ranges.back().end = i + 1;
    else
      ranges.push_back({i, i + 1});
  }
  return ranges;
}

Result<char> PageReader::read_range(std::span<const std::uint64_t> pages, Range range) {
  const std::uint64_t first = pages[sorted_[range.begin]], last = pages[sorted_[range.end - 1]];
  const auto location = [&](std::size_t i) { return std::span(room_).subspan(i * page_bytes_, page_bytes_); };
  std::vector<std::byte> several;
  std::span<std::byte> out = location(sorted_[range.begin]);
  if (first != last) {
    several.resize((last - first + 1) * page_bytes_);
    out = several;
  }
  FEEDLINE_TRY(const std::size_t got, reader_.read_at(first * page_bytes_, out));
  if (got < out.size()) return storage_error("'" + reader_.name() + "' became shorter while it was read", 0);
  if (first == last) return '\0';
  for (std::size_t i = range.begin; i < range.end; ++i)
    std::memcpy(location(sorted_[i]).data(), several.data() + (pages[sorted_[i]] - first) * page_bytes_, page_bytes_);
  return '\0';
}

Result<void> PageReader::read(std::span<const std::uint64_t> pages) {
  room_.resize(pages.size() * page_bytes_);
  const std::vector<Range> ranges = ranges_of(pages);
  const auto one = [&](std::size_t i) { return read_range(pages, ranges[i]); };
  FEEDLINE_CHECK_OK(each_shard<char>(ranges.size(), one, is_remote_ ? shards_side_by_side(true) : 1));
  return {};
}

}  // namespace feedline::format
