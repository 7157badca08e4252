// SPDX-License-Identifier: Apache-2.0
#include "cache/frame.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "cache/checksum.h"

namespace feedline::cache {
namespace {

constexpr std::size_t kWord = 8;
constexpr std::size_t kKindBytes = 2 * kWord, kSumBytes = kWord;

constexpr std::uint64_t padded(std::uint64_t bytes) { return (bytes + kWord - 1) / kWord * kWord; }

std::uint64_t word_at(std::span<const std::byte> file, std::size_t offset) {
  std::uint64_t word = 0;
  std::memcpy(&word, file.data() + offset, kWord);
  return word;
}

}  // namespace

bool is_foreign(std::span<const std::byte> file, FrameKind kind) {
  return file.size() >= kKindBytes && word_at(file, 0) == kind.magic && word_at(file, kWord) != kind.format;
}

bool is_undamaged(std::span<const std::byte> file) {
  if (file.size() < kSumBytes) return false;
  const std::size_t end = file.size() - kSumBytes;
  return word_at(file, end) == xxh3(file.first(end));
}

FrameBuilder::FrameBuilder(FrameKind kind, std::initializer_list<std::uint64_t> numbers)
    : head_{kind.magic, kind.format} {
  head_.insert(head_.end(), numbers);
}

std::span<std::byte> FrameBuilder::write(memory::ByteBuffer& buffer) const {
  std::uint64_t bytes = head_.size() * kWord + kSumBytes;
  for (const auto section : sections_) bytes += padded(section.size());
  const std::span<std::byte> file = buffer.resize(bytes);
  std::byte* out = file.data();
  const auto put = [&out](std::span<const std::byte> section) {
    if (!section.empty()) std::memcpy(out, section.data(), section.size());
    std::memset(out + section.size(), 0, padded(section.size()) - section.size());
    out += padded(section.size());
  };
  put(std::as_bytes(std::span(head_)));
  for (const auto section : sections_) put(section);
  const std::uint64_t sum = xxh3(file.first(bytes - kSumBytes));
  put(std::as_bytes(std::span(&sum, 1)));
  FEEDLINE_CHECK(out == file.data() + bytes);
  return file;
}

FrameReader::FrameReader(std::span<const std::byte> file, FrameKind kind, std::size_t numbers)
    : file_(file), next_(kKindBytes + numbers * kWord) {
  fits_ = file.size() >= next_ + kSumBytes && word_at(file, 0) == kind.magic && word_at(file, kWord) == kind.format;
}

std::uint64_t FrameReader::number(std::size_t i) const {
  const std::size_t offset = kKindBytes + i * kWord;
  return fits_ && offset < next_ ? word_at(file_, offset) : 0;
}

std::uint64_t FrameReader::count(std::size_t i) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 40;  // far above any table, far below overflow
  const std::uint64_t count = number(i);
  fits_ = fits_ && count <= kMost;
  return fits_ ? count : 0;
}

const std::byte* FrameReader::section(std::uint64_t count, std::size_t each) {
  const std::size_t left = fits_ ? file_.size() - kSumBytes - next_ : 0;
  fits_ = fits_ && count <= left / each && padded(count * each) <= left;
  if (!fits_) return nullptr;
  const std::byte* const section = file_.data() + next_;
  next_ += padded(count * each);
  return section;
}

bool FrameReader::is_whole() const { return fits_ && next_ + kSumBytes == file_.size(); }

}  // namespace feedline::cache
