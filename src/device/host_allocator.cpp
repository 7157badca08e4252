// SPDX-License-Identifier: Apache-2.0
#include "device/host_allocator.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

#include "base/check.h"

namespace feedline::device {
namespace {

// x86-64 and aarch64 with 4 KiB pages; where it differs the advice is only weaker
constexpr std::size_t kHugePage = std::size_t{2} << 20;

std::size_t round_up(std::size_t bytes, std::size_t unit) { return (bytes + unit - 1) / unit * unit; }

std::size_t mapped_bytes(std::size_t bytes) { return round_up(bytes, static_cast<std::size_t>(sysconf(_SC_PAGESIZE))); }

Result<std::byte*> map(std::size_t size) {
  const bool huge = size >= 2 * kHugePage;
  // one huge page more than asked, cut off again, so that the block starts on a huge-page border
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
    madvise(data, size, MADV_HUGEPAGE);  // advice: refused where the kernel has none
  }
  return data;
}

}  // namespace

HostAllocator::~HostAllocator() {
  if (kept_ != nullptr) munmap(kept_, kept_bytes_);
}

Result<std::byte*> HostAllocator::allocate(std::size_t bytes) {
  FEEDLINE_CHECK(bytes > 0);
  const std::size_t size = mapped_bytes(bytes);
  {
    const std::lock_guard lock(mutex_);
    if (kept_ != nullptr && kept_bytes_ == size) return std::exchange(kept_, nullptr);
  }
  return map(size);
}

void HostAllocator::release(std::byte* data, std::size_t bytes) {
  std::size_t size = mapped_bytes(bytes);
  {
    const std::lock_guard lock(mutex_);
    std::swap(kept_, data);
    std::swap(kept_bytes_, size);
  }
  if (data != nullptr) munmap(data, size);
}

}  // namespace feedline::device
