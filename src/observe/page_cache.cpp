// SPDX-License-Identifier: Apache-2.0
#include "observe/page_cache.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <vector>

namespace feedline::observe {
namespace {

constexpr long kCachestat = 451;  // the same on every architecture; headers older than the kernel lack the name
constexpr std::uint64_t kWindowBytes = 16u << 20;
constexpr std::uint64_t kWindows = 8;  // for a file larger than all of them, evenly spread

// Returns how many pages of one window are cached; nullopt if the window cannot be mapped.
std::optional<std::uint64_t> resident_pages(int file, std::uint64_t offset, std::uint64_t bytes) {
  void* window = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file, static_cast<off_t>(offset));
  if (window == MAP_FAILED) return std::nullopt;
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> in_core((bytes + page - 1) / page);
  const bool is_known = ::mincore(window, bytes, in_core.data()) == 0;
  ::munmap(window, bytes);
  if (!is_known) return std::nullopt;
  return static_cast<std::uint64_t>(std::ranges::count_if(in_core, [](unsigned char state) { return state & 1; }));
}

}  // namespace

bool ask_cachestat(int file, FileFacts& facts) {
  struct Range {
    std::uint64_t offset = 0, length = 0;  // 0: to the end
  } range;
  struct Pages {
    std::uint64_t cached = 0, dirty = 0, writeback = 0, evicted = 0, recently_evicted = 0;
  } pages;
  if (::syscall(kCachestat, file, &range, &pages, 0) != 0) return false;
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  facts.cached_bytes = std::min(pages.cached * page, facts.bytes);
  facts.unwritten_bytes = (pages.dirty + pages.writeback) * page;
  return true;
}

void ask_mincore(int file, FileFacts& facts) {
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const std::uint64_t count = facts.bytes <= kWindows * kWindowBytes ? 1 : kWindows;
  const std::uint64_t window = count == 1 ? facts.bytes : kWindowBytes;
  std::uint64_t resident = 0, looked_at = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t offset = count == 1 ? 0 : (facts.bytes - window) / (count - 1) * i / page * page;
    const auto pages = resident_pages(file, offset, window);
    if (!pages) return;
    resident += *pages;
    looked_at += (window + page - 1) / page;
  }
  const double share = static_cast<double>(resident) / static_cast<double>(std::max<std::uint64_t>(looked_at, 1));
  facts.cached_bytes = static_cast<std::uint64_t>(share * static_cast<double>(facts.bytes));
}

}  // namespace feedline::observe
