// SPDX-License-Identifier: Apache-2.0
#include "format/tfrecord/record_frame.h"

#include <bit>
#include <cstring>

#include "base/crc.h"

namespace feedline::format {
namespace {

static_assert(std::endian::native == std::endian::little, "frames are read in place");

constexpr std::uint64_t kLengthBytes = 8;

template <typename Number>
Number number_at(std::span<const std::byte> bytes, std::size_t offset) {
  Number number;
  std::memcpy(&number, bytes.data() + offset, sizeof number);
  return number;
}

}  // namespace

std::uint32_t masked_crc(std::span<const std::byte> bytes) {
  constexpr std::uint32_t kDelta = 0xa282ead8;
  const auto crc = static_cast<std::uint32_t>(base::crc(base::CrcKind::k32c, 0, bytes));
  return std::rotr(crc, 15) + kDelta;
}

std::optional<std::uint64_t> length_in_header(std::span<const std::byte> header) {
  if (header.size() < kRecordHeaderBytes) return {};
  if (masked_crc(header.first(kLengthBytes)) != number_at<std::uint32_t>(header, kLengthBytes)) return {};
  return number_at<std::uint64_t>(header, 0);
}

std::span<const std::byte> data_in(std::span<const std::byte> record) {
  return record.subspan(kRecordHeaderBytes, record.size() - kRecordFrameBytes);
}

bool has_good_data(std::span<const std::byte> record) {
  return masked_crc(data_in(record)) == number_at<std::uint32_t>(record, record.size() - kRecordFooterBytes);
}

}  // namespace feedline::format
