// SPDX-License-Identifier: Apache-2.0
#include "storage/http/curl_buffers.h"

#include <sys/mman.h>

#include <atomic>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace feedline::storage {
namespace {

constexpr std::size_t kSlots = 64;  // one bit each in a word; also the maximum number of connections to a host
constexpr std::size_t kMoreThanBuffer = 64;
constexpr std::size_t kSlotBytes = kCurlBufferBytes + (std::size_t{4} << 10);  // including curl's overhead

struct Slots {
  std::byte* begin = nullptr;          // nullptr: allocation failed
  std::atomic<std::uint64_t> free{0};  // one bit each

  bool has(const void* block) const {
    const auto address = reinterpret_cast<std::uintptr_t>(block), first = reinterpret_cast<std::uintptr_t>(begin);
    return begin != nullptr && address >= first && address < first + kSlots * kSlotBytes;
  }
};

// Created once and never destroyed, because curl may free blocks until the process ends.
Slots& slots() {
  static Slots* const made = [] {
    auto* const all = new Slots;
    void* const memory = ::mmap(nullptr, kSlots * kSlotBytes, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return all;
    all->begin = static_cast<std::byte*>(memory);
    all->free = ~std::uint64_t{0};
    return all;
  }();
  return *made;
}

// Returns the lowest free buffer, so that no more buffers are touched than are in use at the same time; nullptr if none
// is free.
void* take_slot() {
  Slots& all = slots();
  std::uint64_t free = all.free.load(std::memory_order_relaxed);
  while (free != 0) {
    const int lowest = std::countr_zero(free);
    if (all.free.compare_exchange_weak(free, free & (free - 1), std::memory_order_acquire, std::memory_order_relaxed))
      return all.begin + static_cast<std::size_t>(lowest) * kSlotBytes;
  }
  return nullptr;
}

}  // namespace

void* allocate_for_curl(std::size_t bytes) {
  if (bytes >= kCurlBufferBytes && bytes <= kCurlBufferBytes + kMoreThanBuffer)
    if (void* const slot = take_slot()) return slot;
  return std::malloc(bytes);
}

void free_of_curl(void* block) {
  Slots& all = slots();
  if (!all.has(block)) return std::free(block);
  const auto slot = static_cast<std::size_t>(static_cast<std::byte*>(block) - all.begin) / kSlotBytes;
  all.free.fetch_or(std::uint64_t{1} << slot, std::memory_order_release);
}

void* reallocate_for_curl(void* block, std::size_t bytes) {
  if (!slots().has(block)) return std::realloc(block, bytes);
  if (bytes <= kSlotBytes) return block;
  void* const larger = std::malloc(bytes);
  if (larger == nullptr) return nullptr;
  std::memcpy(larger, block, kSlotBytes);
  free_of_curl(block);
  return larger;
}

char* duplicate_for_curl(const char* text) {
  const std::size_t bytes = std::strlen(text) + 1;
  void* const copy = allocate_for_curl(bytes);
  if (copy != nullptr) std::memcpy(copy, text, bytes);
  return static_cast<char*>(copy);
}

// For large zeroed blocks, calloc is better, because new pages are already zero.
void* allocate_zeros_for_curl(std::size_t count, std::size_t bytes) { return std::calloc(count, bytes); }

}  // namespace feedline::storage
