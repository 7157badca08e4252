// SPDX-License-Identifier: Apache-2.0
#include "format/index/opening_reader.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "cache/node/cached_storage.h"
#include "storage/fetch.h"

namespace feedline::format {
namespace {

constexpr std::uint64_t kBegin = 512;                          // returned by opening (storage/http)
constexpr std::uint64_t kLeast = 4096;                         // takes about as long as one byte
constexpr std::uint64_t kSteps = 16;                           // headers per request, if they are near each other
constexpr std::uint64_t kMostAhead = std::uint64_t{4} << 20U;  // maximum size of such a request
constexpr std::uint64_t kGap = std::uint64_t{16} << 10U;       // maximum gap between ranges to merge

// Sorts the ranges, and merges neighbouring ranges with small gaps.
std::vector<ByteRange> joined_ranges(std::vector<ByteRange> ranges) {
  std::ranges::sort(ranges, {}, &ByteRange::offset);
  std::vector<ByteRange> joined;
  for (const ByteRange& range : ranges) {
    if (!joined.empty()) {
      ByteRange& last = joined.back();
      const std::uint64_t end = range.offset + range.bytes;
      if (range.offset <= last.offset + last.bytes + kGap && end - last.offset <= kMostAhead) {
        last.bytes = std::max(last.bytes, end - last.offset);
        continue;
      }
    }
    joined.push_back(range);
  }
  return joined;
}

}  // namespace

bool copies_whole(const storage::Storage& storage) {
  return dynamic_cast<const cache::CachedStorage*>(&storage) != nullptr;
}

Result<std::shared_ptr<const storage::Reader>> open_part(const storage::Storage& storage, const std::string& path,
                                                         const std::optional<storage::Version>& version) {
  if (const auto* cached = dynamic_cast<const cache::CachedStorage*>(&storage)) return cached->open_part(path, version);
  return version ? storage.open_version(path, storage::Access::kRead, *version)
                 : storage.open(path, storage::Access::kRead);
}

Result<std::unique_ptr<OpeningReader>> OpeningReader::open(std::shared_ptr<const storage::Storage> storage,
                                                           const std::string& path, const ShardPartsStore& store,
                                                           bool checks_version) {
  auto stored = checks_version ? std::nullopt : store.at_hand(*storage, path);
  const bool is_checked = !stored;
  FEEDLINE_TRY(auto reader, open_part(*storage, path, stored ? std::optional(stored->version()) : std::nullopt));
  FEEDLINE_TRY(const storage::Version version, reader->version());
  if (!stored) stored = store.load(*storage, path, version);
  return std::make_unique<OpeningReader>(std::move(storage), std::move(reader), version, std::move(stored), is_checked);
}

OpeningReader::OpeningReader(std::shared_ptr<const storage::Storage> storage,
                             std::shared_ptr<const storage::Reader> reader, const storage::Version& version,
                             std::optional<ShardParts> stored, bool is_checked)
    : storage_(std::move(storage)),
      name_(reader->name()),
      version_(version),
      stored_(std::move(stored)),
      is_checked_(is_checked),
      reader_(std::move(reader)) {}

std::optional<OpeningReader::Bytes> OpeningReader::at_hand(std::uint64_t offset, std::size_t count) const {
  if (stored_)
    if (const auto found = stored_->find(offset, count)) return found;
  const auto next = taken_.upper_bound(offset);
  if (next == taken_.begin()) return {};
  const auto& [begin, bytes] = *std::prev(next);
  if (offset - begin > bytes.size() || count > bytes.size() - (offset - begin)) return {};
  return Bytes(bytes).subspan(offset - begin, count);
}

Result<void> OpeningReader::reopen() const {
  if (reader_) return {};
  FEEDLINE_TRY(reader_, storage_->open_version(name_, storage::Access::kRead, version_));
  return {};
}

Result<void> OpeningReader::fill_window(std::uint64_t offset, std::uint64_t count) const {
  if (offset >= window_begin_ && offset + count <= window_begin_ + window_.size()) return {};
  std::uint64_t begin = offset, size = offset + count <= kBegin ? count : std::max(count, kLeast);
  if (!storage_->is_remote()) {
    size = count;
  } else if (offset + count == version_.bytes) {
    begin -= std::min(begin, kTail - std::min(kTail, count));
    size = version_.bytes - begin;
  } else if (offset > last_ && offset - last_ < kNear) {
    size = std::max(size, std::min(kSteps * (offset - last_), kMostAhead));
  }
  window_.resize(static_cast<std::size_t>(std::min(size, version_.bytes - begin)));
  window_begin_ = begin;
  FEEDLINE_CHECK_OK(reopen());
  auto got = reader_->read_at(begin, window_);
  window_.resize(got ? *got : 0);
  if (!got) return std::unexpected(std::move(got).error());
  return {};
}

Result<std::size_t> OpeningReader::read_at(std::uint64_t offset, std::span<std::byte> out) const {
  out = out.first(
      static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), version_.bytes - std::min(offset, version_.bytes))));
  if (out.empty()) return 0;
  const std::lock_guard lock(mutex_);
  if (const auto held = at_hand(offset, out.size())) {
    std::ranges::copy(*held, out.begin());
    last_ = offset;
    return out.size();
  }
  FEEDLINE_CHECK_OK(fill_window(offset, out.size()));
  last_ = offset;
  const std::size_t at = std::min(window_.size(), static_cast<std::size_t>(offset - window_begin_));
  const Bytes got = Bytes(window_).subspan(at, std::min(out.size(), window_.size() - at));
  std::ranges::copy(got, out.begin());
  if (got.size() == out.size()) taken_.insert_or_assign(offset, std::vector<std::byte>(got.begin(), got.end()));
  return got.size();
}

void OpeningReader::bring(std::vector<ByteRange> ranges) const {
  if (!storage_->is_remote()) return;
  const std::lock_guard lock(mutex_);
  std::erase_if(ranges, [&](const ByteRange& range) {
    return range.bytes == 0 || range.offset > version_.bytes || range.bytes > version_.bytes - range.offset ||
           (range.offset >= window_begin_ && range.offset + range.bytes <= window_begin_ + window_.size()) ||
           at_hand(range.offset, static_cast<std::size_t>(range.bytes));
  });
  if (ranges.size() < 2) return;   // a single range is fetched when it is read
  for (ByteRange& range : ranges)  // readers of headers read slightly past each header
    range.bytes = std::min(range.bytes + kLeast, version_.bytes - range.offset);
  ranges = joined_ranges(std::move(ranges));
  std::vector<storage::Fetch> fetches(ranges.size());
  const auto queue = storage::make_fetch_queue(storage_, storage::QueueKind::kBest);
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    fetches[i].piece = {reader_, {}, ranges[i].offset, ranges[i].bytes, {}};
    fetches[i].most_bytes = ranges[i].bytes;
    queue->start(fetches[i]);
  }
  for (std::size_t left = fetches.size(); left > 0;)
    if (const auto* done =
            static_cast<const storage::Fetch*>(queue->finished(storage::FetchQueue::Clock::time_point::max()))) {
      --left;
      if (done->bytes && done->bytes->size() == done->piece.bytes)
        taken_.insert_or_assign(done->piece.offset, std::vector<std::byte>(done->bytes->begin(), done->bytes->end()));
    }
}

std::string OpeningReader::note() const {
  const std::lock_guard lock(mutex_);
  if (note_) return *note_;
  return stored_ ? std::string(stored_->note()) : std::string();
}

void OpeningReader::set_note(std::string note) const {
  const std::lock_guard lock(mutex_);
  note_ = std::move(note);
}

Result<std::shared_ptr<const storage::Reader>> OpeningReader::values() const {
  const std::lock_guard lock(mutex_);
  FEEDLINE_CHECK_OK(reopen());
  return reader_;
}

void OpeningReader::let_go() const {
  const std::lock_guard lock(mutex_);
  window_ = {};
  if (!storage_->is_remote()) reader_ = nullptr;
}

// Returns the parts to store, or nullopt if the parts have too many bytes.
std::optional<ShardParts> OpeningReader::joined(std::uint64_t shard_bytes) const {
  constexpr std::uint64_t kMost = std::uint64_t{64} << 20U, kShare = 4;
  std::map<std::uint64_t, Bytes> all;
  for (const auto& [offset, bytes] : taken_) all.emplace(offset, bytes);
  for (std::uint64_t i = 0; stored_ && i < stored_->size(); ++i) {
    const ShardParts::Part part = stored_->part(i);
    Bytes& held = all[part.offset];
    if (held.size() < part.bytes.size()) held = part.bytes;
  }
  std::vector<std::vector<std::byte>> joined;
  std::vector<ShardParts::Part> parts;
  std::uint64_t total = 0;
  for (const auto& [offset, bytes] : all) {
    const std::uint64_t end = parts.empty() ? 0 : parts.back().offset + joined.back().size();
    const bool goes_on = !parts.empty() && offset <= end;
    if (!goes_on) {
      parts.push_back({offset, {}});
      joined.emplace_back();
    }
    const std::size_t known =
        goes_on ? static_cast<std::size_t>(std::min<std::uint64_t>(end - offset, bytes.size())) : 0;
    joined.back().insert(joined.back().end(), bytes.begin() + static_cast<std::ptrdiff_t>(known), bytes.end());
    total += bytes.size() - known;
  }
  if (total > std::min(kMost, std::max(kTail, shard_bytes / kShare))) return {};
  for (std::size_t i = 0; i < parts.size(); ++i) parts[i].bytes = joined[i];
  return ShardParts::build(parts, version_, note_ ? std::string_view(*note_) : stored_ ? stored_->note() : "");
}

Result<void> OpeningReader::keep(const ShardPartsStore& store, std::optional<std::uint64_t> shard_bytes) const {
  const std::lock_guard lock(mutex_);
  const bool is_worth_it = storage_->is_remote() || stored_ || taken_.size() > kFewReads;
  if ((taken_.empty() && !note_) || !is_worth_it) return {};
  if (const auto parts = joined(shard_bytes.value_or(version_.bytes))) return store.save(*storage_, name_, *parts);
  return {};
}

}  // namespace feedline::format
