// SPDX-License-Identifier: Apache-2.0
#include "cache/node/piece_memory.h"

#include <algorithm>

#include "cache/node/stop.h"

namespace feedline::cache {

PieceMemory::Hold& PieceMemory::Hold::operator=(Hold&& other) noexcept {
  if (this == &other) return *this;
  end();
  memory_ = std::move(other.memory_);
  bytes_ = other.bytes_;
  is_room_ = other.is_room_;
  return *this;
}

void PieceMemory::Hold::end() {
  if (const auto memory = std::exchange(memory_, nullptr)) {
    {
      const std::lock_guard lock(memory->mutex_);
      (is_room_ ? memory->held_ : memory->set_aside_) -= bytes_;
    }
    memory->freed_cv_.notify_all();
  }
}

PieceMemory::Share PieceMemory::set_aside(std::uint64_t bytes) {
  {
    const std::lock_guard lock(mutex_);
    set_aside_ += bytes;
  }
  freed_cv_.notify_all();
  return {shared_from_this(), bytes, false};
}

std::uint64_t PieceMemory::limit() const { return set_aside_ > 0 ? set_aside_ : without_loaders_; }

std::uint64_t PieceMemory::piece_bytes() const {
  const std::lock_guard lock(mutex_);
  return std::clamp(limit() / kPiecesAtOnce, kLeastPieceBytes, kPieceBytes);
}

PieceMemory::Room PieceMemory::take(std::uint64_t bytes) {
  held_ += bytes;
  most_held_ = std::max(most_held_, held_);
  return {shared_from_this(), bytes, true};
}

std::optional<PieceMemory::Room> PieceMemory::wait_for(std::uint64_t bytes, Stop* stop) {
  const Waking waking(stop, [this] {
    { const std::lock_guard lock(mutex_); }  // callers that are about to wait do so
    freed_cv_.notify_all();
  });
  std::unique_lock lock(mutex_);
  ++waiting_;
  freed_cv_.wait(lock, [&] { return held_ == 0 || held_ + bytes <= limit() || is_stopped(stop); });
  --waiting_;
  if (is_stopped(stop)) return std::nullopt;
  return take(bytes);
}

std::optional<PieceMemory::Room> PieceMemory::try_for(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  if (waiting_ > 0 || held_ + bytes > limit()) return std::nullopt;
  return take(bytes);
}

bool PieceMemory::is_waited_for() const {
  const std::lock_guard lock(mutex_);
  return waiting_ > 0;
}

std::uint64_t PieceMemory::most_held() const {
  const std::lock_guard lock(mutex_);
  return most_held_;
}

}  // namespace feedline::cache
