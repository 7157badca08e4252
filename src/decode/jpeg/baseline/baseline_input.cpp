// SPDX-License-Identifier: Apache-2.0
#include "decode/jpeg/baseline/baseline_input.h"

#include <algorithm>
#include <cstring>

#include "decode/jpeg/restart_scan.h"

namespace feedline::decode::baseline {
namespace {

constexpr std::uint8_t kMarkerPrefix = 0xFF;
constexpr std::uint8_t kEndOfImage = 0xD9;

}  // namespace

void BaselineInput::start(std::span<const std::byte> scan, BitBuffer& buffer) {
  from_ = reinterpret_cast<const std::uint8_t*>(scan.data());
  end_ = from_ + scan.size();
  at_marker_ = false;
  filled_ = 0;
  buffer = {.bits = 0, .count = 0, .next = buffer_.data(), .limit = buffer_.data()};
  (void)refill(buffer);
}

// Appends to the buffer until it is full or a marker follows.
void BaselineInput::unstuff() {
  while (filled_ < kPiece) {
    const std::size_t room = std::min(kPiece - filled_, static_cast<std::size_t>(end_ - from_));
    const auto* prefix =
        room == 0 ? nullptr : static_cast<const std::uint8_t*>(std::memchr(from_, kMarkerPrefix, room));
    const std::size_t plain = prefix ? static_cast<std::size_t>(prefix - from_) : room;
    if (plain > 0) std::memcpy(buffer_.data() + filled_, from_, plain);
    filled_ += plain;
    from_ += plain;
    if (prefix && end_ - from_ >= 2 && from_[1] == 0) {
      buffer_[filled_++] = kMarkerPrefix;
      from_ += 2;
    } else if (prefix || from_ == end_) {
      at_marker_ = true;
      return;
    }
  }
}

bool BaselineInput::refill(BitBuffer& buffer) {
  if (at_marker_) return false;
  const auto used = static_cast<std::size_t>(buffer.next - buffer_.data());
  filled_ -= used;  // until a marker is found, `next` never passes the end of the available bytes
  std::memmove(buffer_.data(), buffer.next, filled_);
  buffer.next = buffer_.data();
  unstuff();
  if (at_marker_) {
    std::memset(buffer_.data() + filled_, 0, kSlack);
    // `next` is ahead of the consumed bits by less than the buffer's 8 bytes; otherwise bits were read past the end
    buffer.limit = buffer_.data() + filled_ + sizeof buffer.bits;
  } else {
    buffer.limit = buffer_.data() + filled_ - kSlack;
  }
  return true;
}

bool BaselineInput::is_within(const BitBuffer& buffer) const {
  const std::ptrdiff_t ahead = buffer.next - (buffer_.data() + filled_);
  return !at_marker_ || ahead * 8 <= static_cast<std::ptrdiff_t>(buffer.count);
}

bool BaselineInput::at_marker(BitBuffer& buffer) {
  if (!at_marker_) (void)refill(buffer);
  if (!at_marker_ || !is_within(buffer)) return false;
  const std::ptrdiff_t left = (buffer_.data() + filled_ - buffer.next) * 8 + static_cast<std::ptrdiff_t>(buffer.count);
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
