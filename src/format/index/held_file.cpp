// SPDX-License-Identifier: Apache-2.0
#include "format/index/held_file.h"

#include <sys/mman.h>

#include <algorithm>
#include <limits>
#include <span>

#include "base/check.h"

namespace feedline::format {

std::unique_ptr<HeldFile> HeldFile::make(std::uint64_t bytes) {
  if (bytes == 0 || bytes > std::numeric_limits<std::size_t>::max()) return nullptr;
  void* const data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED) return nullptr;
  // Huge pages would make the first batches slow, because the kernel would have to clear a new huge page for nearly
  // every window.
  return std::unique_ptr<HeldFile>(new HeldFile(static_cast<std::byte*>(data), bytes));
}

HeldFile::HeldFile(std::byte* data, std::uint64_t bytes)
    : data_(data), bytes_(bytes), states_((bytes + kBlock - 1) / kBlock) {}

HeldFile::~HeldFile() { ::munmap(data_, bytes_); }

const std::byte* HeldFile::find(const storage::Reader& reader, std::uint64_t offset, std::uint64_t count) {
  FEEDLINE_CHECK(count > 0 && offset < bytes_ && count <= bytes_ - offset);
  for (std::uint64_t block = offset / kBlock; block <= (offset + count - 1) / kBlock; ++block)
    if (states_[block].load(std::memory_order_acquire) != State::kThere && !bring(reader, block)) return nullptr;
  return data_ + offset;
}

void HeldFile::prefetch(std::uint64_t offset, std::uint64_t count) const {
  constexpr std::uint64_t kLine = 64;
  // more lines would evict each other from the L1 cache; the hardware prefetcher continues sequential runs
  constexpr std::uint64_t kMost = 8 << 10;
  const std::uint64_t end = offset + std::min(count, kMost);
  for (std::uint64_t at = offset / kLine * kLine; at < end; at += kLine) __builtin_prefetch(data_ + at);
}

bool HeldFile::bring(const storage::Reader& reader, std::uint64_t block) {
  auto& state = states_[block];
  State expected = State::kAbsent;
  if (!state.compare_exchange_strong(expected, State::kComing, std::memory_order_acquire))
    return expected == State::kThere;
  const std::uint64_t first = block * kBlock;
  const std::span<std::byte> room(data_ + first, std::min(kBlock, bytes_ - first));
  const auto got = reader.read_at(first, room);
  const bool is_whole = got && *got == room.size();
  state.store(is_whole ? State::kThere : State::kAbsent, std::memory_order_release);
  return is_whole;
}

}  // namespace feedline::format
