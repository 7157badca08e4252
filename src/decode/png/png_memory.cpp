// SPDX-License-Identifier: Apache-2.0
#include "decode/png/png_memory.h"

#include <spng.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

namespace feedline::decode {
namespace {

thread_local memory::Arena* serving = nullptr;

// Every allocation is preceded by its size, for realloc().
constexpr std::size_t kHead = memory::Arena::kAlignment;

void* allocate(std::size_t bytes) {
  if (bytes > std::numeric_limits<std::size_t>::max() - kHead) return nullptr;
  auto* const head = static_cast<std::byte*>(serving->allocate(kHead + bytes));
  if (head == nullptr) return nullptr;
  std::memcpy(head, &bytes, sizeof bytes);
  return head + kHead;
}

void* allocate_zeroed(std::size_t count, std::size_t bytes) {
  std::size_t total = 0;
  if (__builtin_mul_overflow(count, bytes, &total)) return nullptr;
  void* const given = allocate(total);
  return given == nullptr ? nullptr : std::memset(given, 0, total);
}

void* reallocate(void* given, std::size_t bytes) {
  void* const moved = allocate(bytes);
  if (given == nullptr || moved == nullptr) return moved;
  std::size_t had = 0;
  std::memcpy(&had, static_cast<std::byte*>(given) - kHead, sizeof had);
  return std::memcpy(moved, given, std::min(had, bytes));
}

void keep(void*) {}  // until the image ends

spng_ctx* make_context() {
  spng_alloc functions{allocate, reallocate, allocate_zeroed, keep};
  return spng_ctx_new2(&functions, 0);
}

}  // namespace

PngMemory::Image::Image(PngMemory& memory)
    : arena_(&memory.arena_), outer_(std::exchange(serving, arena_)), context_(make_context()) {}

PngMemory::Image::~Image() {
  spng_ctx_free(context_);
  arena_->reset();
  serving = outer_;
}

}  // namespace feedline::decode
