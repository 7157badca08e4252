// SPDX-License-Identifier: Apache-2.0
#include "device/host_allocator.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

#include "base/check.h"

namespace feedline::device {
namespace {

// x86-64 and aarch64 with 4 KiB pages; elsewhere the advice only has less effect
constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kSmallCached = std::size_t{8} << 20;

std::size_t round_up(std::size_t bytes, std::size_t unit) { return (bytes + unit - 1) / unit * unit; }

std::size_t mapped_bytes(std::size_t bytes) { return round_up(bytes, static_cast<std::size_t>(sysconf(_SC_PAGESIZE))); }

bool is_huge(std::size_t size) { return size >= 2 * kHugePage; }

// Moves the pages at `from` to `to`, and unmaps `from`.
void move_huge_page(std::byte* from, std::byte* to) {
  if (mremap(from, kHugePage, kHugePage, MREMAP_MAYMOVE | MREMAP_FIXED, to) != MAP_FAILED) return;
  munmap(from, kHugePage);
  // a failed move may have unmapped its destination
  void* mapped = mmap(to, kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  FEEDLINE_CHECK(mapped == to);
}

Result<std::byte*> map(std::size_t size) {
  const bool huge = is_huge(size);
  // reserve one more huge page, trimmed below, so that the block starts on a huge-page boundary
  const std::size_t reserve = huge ? size + kHugePage : size;
  void* mapped = mmap(nullptr, reserve, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return storage_error("no memory for a batch of " + std::to_string(size) + " bytes", errno);
  auto* data = static_cast<std::byte*>(mapped);
  if (huge) {
    const auto address = reinterpret_cast<std::size_t>(data);
    const std::size_t head = round_up(address, kHugePage) - address;
    if (head > 0) munmap(data, head);
    if (head < kHugePage) munmap(data + head + size, kHugePage - head);
    data += head;
    madvise(data, size, MADV_HUGEPAGE);  // only advice: the kernel may not support it
  }
  return data;
}

// Returns a block of another size with the pages of the block `data`, which ends.
Result<std::byte*> resized(std::byte* data, std::size_t from, std::size_t size) {
  if (size <= from) {
    if (size < from) munmap(data + size, from - size);
    return data;
  }
  auto grown = map(size);
  std::size_t moved = 0;
  for (; grown && moved + kHugePage <= from; moved += kHugePage) move_huge_page(data + moved, *grown + moved);
  if (moved < from) munmap(data + moved, from - moved);
  return grown;
}

}  // namespace

HostAllocator::~HostAllocator() {
  if (cached_ != nullptr) munmap(cached_, cached_bytes_);
  for (std::byte* block : small_) munmap(block, small_bytes_);
}

std::byte* HostAllocator::take_small(std::size_t size) {
  const std::lock_guard lock(mutex_);
  if (small_.empty() || small_bytes_ != size) return nullptr;
  std::byte* const data = small_.back();
  small_.pop_back();
  return data;
}

bool HostAllocator::keep_small(std::byte* data, std::size_t size) {
  const std::lock_guard lock(mutex_);
  if (small_.empty()) small_bytes_ = size;
  if (small_bytes_ != size || (small_.size() + 1) * size > kSmallCached) return false;
  small_.push_back(data);
  return true;
}

Result<std::byte*> HostAllocator::allocate(std::size_t bytes) {
  FEEDLINE_CHECK(bytes > 0);
  const std::size_t size = mapped_bytes(bytes);
  if (!is_huge(size)) {
    std::byte* const data = take_small(size);
    return data != nullptr ? Result<std::byte*>(data) : map(size);
  }
  std::unique_lock lock(mutex_);
  if (cached_ != nullptr) {
    spare_ = 0;
    std::byte* const cached = std::exchange(cached_, nullptr);
    const std::size_t cached_bytes = cached_bytes_;
    lock.unlock();
    return resized(cached, cached_bytes, size);
  }
  lock.unlock();
  FEEDLINE_TRY(std::byte * data, map(size));
  lock.lock();
  unwritten_.emplace_back(data, size);
  return data;
}

void HostAllocator::release(std::byte* data, std::size_t bytes) {
  std::size_t size = mapped_bytes(bytes);
  if (!is_huge(size)) {
    if (!keep_small(data, size)) munmap(data, size);
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    std::erase(unwritten_, std::pair(data, size));
    std::swap(cached_, data);
    std::swap(cached_bytes_, size);
    spare_ = ++releases_;
  }
  if (data != nullptr) munmap(data, size);
}

void HostAllocator::reuse_pages(std::byte* data, std::size_t first, std::size_t last) {
  if (spare_pages() == 0) return;
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find(unwritten_, data, &std::pair<std::byte*, std::size_t>::first);
  if (cached_ == nullptr || found == unwritten_.end() || found->second != cached_bytes_) return;
  unwritten_.erase(found);
  // page by page: mremap cannot move a range of several mappings, which earlier moves create
  const std::size_t begin = std::min(round_up(first, kHugePage), cached_bytes_);
  std::size_t end = begin;
  for (; end + kHugePage <= last; end += kHugePage) move_huge_page(cached_ + end, data + end);
  // only pages that were not moved: another thread's mapping may now occupy the others
  if (begin > 0) munmap(cached_, begin);
  if (end < cached_bytes_) munmap(cached_ + end, cached_bytes_ - end);
  cached_ = nullptr;
  spare_ = 0;
}

}  // namespace feedline::device
