// SPDX-License-Identifier: Apache-2.0
#include "storage/object_sum.h"

#include <utility>

#include "base/crc.h"

namespace feedline::storage {
namespace {

std::size_t length_of(SumKind kind) {
  switch (kind) {
    case SumKind::kCrc32c:
    case SumKind::kCrc32:
      return 4;
    case SumKind::kCrc64Nvme:
      return 8;
    case SumKind::kSha256:
      return 32;
  }
  return 0;
}

std::string_view name_of(SumKind kind) {
  switch (kind) {
    case SumKind::kCrc32c:
      return "crc32c";
    case SumKind::kCrc32:
      return "crc32";
    case SumKind::kCrc64Nvme:
      return "crc64nvme";
    case SumKind::kSha256:
      return "sha256";
  }
  return {};
}

base::CrcKind crc_of(SumKind kind) {
  if (kind == SumKind::kCrc32c) return base::CrcKind::k32c;
  return kind == SumKind::kCrc32 ? base::CrcKind::k32 : base::CrcKind::k64Nvme;
}

std::optional<ObjectSum> checked(SumKind kind, std::optional<std::string> value) {
  if (!value || value->size() != length_of(kind)) return {};
  return ObjectSum{kind, std::move(*value)};
}

// Decodes base64 with or without padding.
std::optional<std::string> decoded_base64(std::string_view text) {
  static constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  while (text.ends_with('=')) text.remove_suffix(1);
  std::string bytes;
  std::uint32_t bits = 0;
  int held = 0;
  for (const char c : text) {
    const std::size_t digit = kDigits.find(c);
    if (digit == kDigits.npos) return {};
    bits = bits << 6 | static_cast<std::uint32_t>(digit);
    held += 6;
    if (held < 8) continue;
    held -= 8;
    bytes += static_cast<char>(bits >> held & 0xff);
  }
  return bytes;
}

std::optional<std::string> decoded_hex(std::string_view text) {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  if (text.size() % 2 != 0) return {};
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); i += 2) {
    const std::size_t high = kDigits.find(text[i]), low = kDigits.find(text[i + 1]);
    if (high == kDigits.npos || low == kDigits.npos) return {};
    bytes += static_cast<char>(high * 16 + low);
  }
  return bytes;
}

}  // namespace

std::string described(const ObjectSum& sum) {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text = std::string(name_of(sum.kind)) + " ";
  for (const char c : sum.value) {
    text += kDigits[static_cast<std::uint8_t>(c) >> 4];
    text += kDigits[static_cast<std::uint8_t>(c) & 15];
  }
  return text;
}

std::optional<ObjectSum> sum_of_base64(SumKind kind, std::string_view text) {
  return checked(kind, decoded_base64(text));
}

std::optional<ObjectSum> sum_of_hex(SumKind kind, std::string_view text) { return checked(kind, decoded_hex(text)); }

void RunningSum::add(std::span<const std::byte> bytes) {
  if (kind_ == SumKind::kSha256)
    sha256_.add(bytes);
  else
    crc_ = base::crc(crc_of(kind_), crc_, bytes);
}

ObjectSum RunningSum::sum() const {
  if (kind_ == SumKind::kSha256) return {kind_, std::string(base::bytes_of(sha256_.digest()))};
  ObjectSum sum{kind_, {}};
  for (std::size_t i = length_of(kind_); i-- > 0;) sum.value += static_cast<char>(crc_ >> (8 * i) & 0xff);
  return sum;
}

ObjectSum sum_of(SumKind kind, std::span<const std::byte> bytes) {
  RunningSum running(kind);
  running.add(bytes);
  return running.sum();
}

std::unexpected<Error> sums_differ(const std::string& object, const ObjectSum& said, const ObjectSum& read,
                                   std::string_view said_by) {
  auto error = storage_error("the object is damaged, or a different version: " + std::string(said_by) + " lists " +
                                 described(said) + ", but the bytes, read twice, have " + described(read) +
                                 "; copy it there again, or open with verify=None to read it unchecked",
                             0);
  error.error().where.shard = object;
  return error;
}

}  // namespace feedline::storage
