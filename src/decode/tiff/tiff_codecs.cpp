// SPDX-License-Identifier: Apache-2.0
#include "decode/tiff/tiff_codecs.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace feedline::decode {
namespace {

constexpr std::uint32_t kClear = 256, kEnd = 257, kFirst = 258, kMostCodes = 4096;

// Codes of 9 to 12 bits, the highest bit first.
class Codes {
 public:
  explicit Codes(std::span<const std::byte> in) : next_(in.data()), end_(in.data() + in.size()) {}

  // Returns kEnd at the end of the data.
  std::uint32_t next(unsigned width) {
    while (have_ < width) {
      if (next_ == end_) return kEnd;
      bits_ = bits_ << 8 | static_cast<std::uint64_t>(*next_++);
      have_ += 8;
    }
    have_ -= width;
    return static_cast<std::uint32_t>(bits_ >> have_) & ((1U << width) - 1);
  }

 private:
  const std::byte* next_;
  const std::byte* const end_;
  std::uint64_t bits_ = 0;
  unsigned have_ = 0;
};

template <typename T>
void swap_all(std::byte* at, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i, at += sizeof(T)) {
    T value;
    std::memcpy(&value, at, sizeof value);
    value = std::byteswap(value);
    std::memcpy(at, &value, sizeof value);
  }
}

template <typename T, std::size_t kChannels>
void add_all(std::byte* row, std::size_t count, std::size_t channels) {
  if constexpr (kChannels != 0) {
    T sums[kChannels] = {};
    for (std::size_t i = 0; i + kChannels <= count; i += kChannels)
      for (std::size_t c = 0; c < kChannels; ++c, row += sizeof(T)) {
        T value;
        std::memcpy(&value, row, sizeof value);
        sums[c] = static_cast<T>(sums[c] + value);
        std::memcpy(row, &sums[c], sizeof value);
      }
  } else {
    for (std::size_t i = channels; i < count; ++i) {
      T value, before;
      std::memcpy(&value, row + i * sizeof(T), sizeof value);
      std::memcpy(&before, row + (i - channels) * sizeof(T), sizeof before);
      value = static_cast<T>(value + before);
      std::memcpy(row + i * sizeof(T), &value, sizeof value);
    }
  }
}

template <typename T>
void add_numbers(std::span<std::byte> row, std::size_t channels) {
  const std::size_t count = row.size() / sizeof(T);
  switch (channels) {
    case 1:
      return add_all<T, 1>(row.data(), count, channels);
    case 3:
      return add_all<T, 3>(row.data(), count, channels);
    default:
      return add_all<T, 0>(row.data(), count, channels);
  }
}

}  // namespace

// The string of a new code is the previous code's string and the first byte of the current one's, which follow each
// other in the output. So the table stores positions in the output.
std::optional<std::size_t> LzwDecoder::decode(std::span<const std::byte> in, std::span<std::byte> out) {
  if (in.size() >= 2 && in[0] == std::byte{0} && (in[1] & std::byte{1}) != std::byte{0}) return std::nullopt;
  Codes codes(in);
  std::size_t made = 0;
  std::uint32_t next = kFirst;
  unsigned width = 9;
  Entry before{0, 0};  // the previous code's string; none after kClear
  while (made < out.size()) {
    const std::uint32_t code = codes.next(width);
    if (code == kEnd) break;
    if (code == kClear) {
      next = kFirst;
      width = 9;
      before = {};
      continue;
    }
    if (before.bytes > 0 && next < kMostCodes) {
      table_[next++] = {before.at, before.bytes + 1};
      if (next == 511 || next == 1023 || next == 2047) ++width;
    }
    const auto at = static_cast<std::uint32_t>(made);
    if (code < kClear) {
      out[made++] = static_cast<std::byte>(code);
      before = {at, 1};
      continue;
    }
    if (code >= next || before.bytes == 0) return std::nullopt;
    const Entry entry = table_[code];
    const std::size_t count = std::min<std::size_t>(entry.bytes, out.size() - made);
    std::byte* const to = out.data() + made;
    const std::byte* const from = out.data() + entry.at;
    if (entry.at + count <= made && count > 8)
      std::memcpy(to, from, count);
    else
      for (std::size_t i = 0; i < count; ++i) to[i] = from[i];  // the newest code's string ends in itself
    made += count;
    before = {at, entry.bytes};
  }
  return made;
}

std::optional<std::size_t> unpack_bits(std::span<const std::byte> in, std::span<std::byte> out) {
  std::size_t made = 0;
  for (std::size_t i = 0; i < in.size() && made < out.size();) {
    const int head = static_cast<std::int8_t>(in[i++]);
    if (head == -128) continue;
    const std::size_t count = static_cast<std::size_t>(head >= 0 ? head + 1 : 1 - head);
    const std::size_t fits = std::min(count, out.size() - made);
    if (in.size() - i < (head >= 0 ? fits : 1)) return std::nullopt;
    if (head >= 0) {
      std::memcpy(&out[made], &in[i], fits);
      i += std::min(count, in.size() - i);
    } else {
      std::memset(&out[made], static_cast<int>(in[i++]), fits);
    }
    made += fits;
  }
  return made;
}

void swap_bytes(std::span<std::byte> numbers, std::size_t bytes) {
  const std::size_t count = numbers.size() / bytes;
  if (bytes == 2) swap_all<std::uint16_t>(numbers.data(), count);
  if (bytes == 4) swap_all<std::uint32_t>(numbers.data(), count);
  if (bytes == 8) swap_all<std::uint64_t>(numbers.data(), count);
}

void add_differences(std::span<std::byte> row, std::size_t bytes, std::size_t channels) {
  if (bytes == 1) add_numbers<std::uint8_t>(row, channels);
  if (bytes == 2) add_numbers<std::uint16_t>(row, channels);
  if (bytes == 4) add_numbers<std::uint32_t>(row, channels);
  if (bytes == 8) add_numbers<std::uint64_t>(row, channels);
}

void join_float_bytes(std::span<std::byte> row, std::size_t bytes, std::size_t channels, std::span<std::byte> room) {
  add_numbers<std::uint8_t>(row, channels);
  std::ranges::copy(row, room.begin());
  const std::size_t count = row.size() / bytes;
  for (std::size_t b = 0; b < bytes; ++b) {
    const std::size_t to = std::endian::native == std::endian::big ? b : bytes - 1 - b;
    const std::byte* const from = room.data() + b * count;
    for (std::size_t i = 0; i < count; ++i) row[i * bytes + to] = from[i];
  }
}

}  // namespace feedline::decode
