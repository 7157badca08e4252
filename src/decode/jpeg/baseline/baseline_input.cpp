// SPDX-License-Identifier: Apache-2.0
#include "decode/jpeg/baseline/baseline_input.h"

#include <algorithm>
#include <cstring>

#include "decode/jpeg/restart_scan.h"

namespace feedline::decode::baseline {
namespace {

constexpr std::uint8_t kMarkerPrefix = 0xFF;
constexpr std::uint8_t kEndOfImage = 0xD9;

// Counts the bytes after which a zero was stuffed.
std::uint64_t prefixes_in(const std::uint8_t* from, const std::uint8_t* end) {
  constexpr std::ptrdiff_t kBlock = 128;  // so that counts fit a byte, for vectors of bytes
  std::uint64_t all = 0;
  while (from != end) {
    const std::ptrdiff_t size = std::min(kBlock, end - from);
    std::uint8_t count = 0;
    for (std::ptrdiff_t i = 0; i < size; ++i) count = static_cast<std::uint8_t>(count + (from[i] == kMarkerPrefix));
    all += count;
    from += size;
  }
  return all;
}

}  // namespace

void BaselineInput::start(std::span<const std::byte> scan, BitBuffer& buffer) {
  from_ = reinterpret_cast<const std::uint8_t*>(scan.data());
  end_ = from_ + scan.size();
  at_marker_ = false;
  filled_ = 0;
  counted_ = first();
  offset_ = origin_ ? static_cast<std::uint64_t>(from_ - origin_) : 0;
  buffer = {.bits = 0, .count = 0, .next = first(), .limit = first()};
  (void)refill(buffer);
}

// Appends to the buffer until it is full or a marker follows.
void BaselineInput::unstuff() {
  while (filled_ < kPiece) {
    const std::size_t room = std::min(kPiece - filled_, static_cast<std::size_t>(end_ - from_));
    const auto* prefix =
        room == 0 ? nullptr : static_cast<const std::uint8_t*>(std::memchr(from_, kMarkerPrefix, room));
    const std::size_t plain = prefix ? static_cast<std::size_t>(prefix - from_) : room;
    if (plain > 0) std::memcpy(first() + filled_, from_, plain);
    filled_ += plain;
    from_ += plain;
    if (prefix && end_ - from_ >= 2 && from_[1] == 0) {
      first()[filled_++] = kMarkerPrefix;
      from_ += 2;
    } else if (prefix || from_ == end_) {
      at_marker_ = true;
      return;
    }
  }
}

bool BaselineInput::refill(BitBuffer& buffer) {
  if (at_marker_) return false;
  const auto used = static_cast<std::size_t>(buffer.next - first());
  filled_ -= used;  // until a marker is found, `next` never passes the end of the available bytes
  if (origin_) {
    count_to(next_byte(buffer));
    counted_ -= used;
    std::memmove(buffer_.data(), buffer.next - kLead, filled_ + kLead);
  } else {
    std::memmove(first(), buffer.next, filled_);
  }
  buffer.next = first();
  unstuff();
  if (at_marker_) {
    std::memset(first() + filled_, 0, kSlack);
    // `next` is ahead of the consumed bits by less than the buffer's 8 bytes; otherwise bits were read past the end
    buffer.limit = first() + filled_ + sizeof buffer.bits;
  } else {
    buffer.limit = first() + filled_ - kSlack;
  }
  return true;
}

void BaselineInput::count_to(const std::uint8_t* byte) {
  offset_ += static_cast<std::uint64_t>(byte - counted_) + prefixes_in(counted_, byte);
  counted_ = byte;
}

std::uint64_t BaselineInput::position(const BitBuffer& buffer) {
  count_to(next_byte(buffer));
  return offset_ * 8 + (8 - buffer.count % 8) % 8;
}

bool BaselineInput::is_within(const BitBuffer& buffer) const {
  const std::ptrdiff_t ahead = buffer.next - (first() + filled_);
  return !at_marker_ || ahead * 8 <= static_cast<std::ptrdiff_t>(buffer.count);
}

bool BaselineInput::at_marker(BitBuffer& buffer) {
  if (!at_marker_) (void)refill(buffer);
  if (!at_marker_ || !is_within(buffer)) return false;
  const std::ptrdiff_t left = (first() + filled_ - buffer.next) * 8 + static_cast<std::ptrdiff_t>(buffer.count);
  return left < 8 && end_ - from_ >= 2;
}

bool BaselineInput::at_restart(int number, BitBuffer& buffer) {
  return at_marker(buffer) && from_[1] == kFirstRestart + number;
}

bool BaselineInput::restart(int number, BitBuffer& buffer) {
  if (!at_restart(number, buffer)) return false;
  start(std::as_bytes(behind_restart()), buffer);
  return true;
}

bool BaselineInput::end_marker_ahead() const {
  // backwards: a valid file ends with the marker, so this takes one step
  for (const std::uint8_t* at = end_; at - from_ >= 2; --at)
    if (at[-1] == kEndOfImage && at[-2] == kMarkerPrefix) return true;
  return false;
}

}  // namespace feedline::decode::baseline
