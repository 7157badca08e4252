// SPDX-License-Identifier: Apache-2.0
#include "format/folder/given_files.h"

#include <mutex>
#include <utility>

#include "base/check.h"

namespace feedline::format {

GivenFiles::GivenFiles(std::shared_ptr<const storage::Storage> storage) : storage_(std::move(storage)) {}

std::uint64_t GivenFiles::add(std::vector<GivenFile> files) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t first = next_;
  next_ += files.size();
  FEEDLINE_CHECK(next_ < kSize);
  if (!files.empty()) additions_.emplace(first, std::move(files));
  return first;
}

void GivenFiles::keep(std::shared_ptr<const void> owner) {
  const std::lock_guard lock(mutex_);
  owners_.push_back(std::move(owner));
}

void GivenFiles::forget(std::uint64_t first) {
  const std::lock_guard lock(mutex_);
  additions_.erase(first);
}

void GivenFiles::forget_all() {
  const std::lock_guard lock(mutex_);
  additions_.clear();
}

std::optional<std::span<const std::byte>> GivenFiles::find(std::uint64_t index, std::string& path) const {
  const std::shared_lock lock(mutex_);
  auto addition = additions_.upper_bound(index);
  if (addition == additions_.begin()) return {};
  --addition;
  const std::uint64_t location = index - addition->first;
  if (location >= addition->second.size()) return {};
  const GivenFile& file = addition->second[location];
  path = file.path;
  return file.bytes;
}

Where GivenFiles::where(std::uint64_t index) const {
  Where where;
  find(index, where.key);
  where.shard = where.key;
  where.record = index;
  return where;
}

Result<void> GivenFiles::read(std::uint64_t index, memory::Record& record) const {
  const auto given = find(index, record.name);
  if (!given) return data_error("file " + std::to_string(index) + " was not added or was removed", "format");
  if (given->data() != nullptr) return accept(index, std::span(&*given, 1), record);
  FEEDLINE_TRY(const auto bytes, storage_->read_all(record.name, record.storage, record.most_bytes));
  return accept(index, std::span(&bytes, 1), record);
}

Result<void> GivenFiles::find_pieces(std::uint64_t index, std::vector<storage::Piece>& pieces) const {
  storage::Piece piece;
  const auto given = find(index, piece.path);
  if (given && given->data() == nullptr) pieces.push_back(std::move(piece));  // files in memory need no fetch
  return {};
}

Result<void> GivenFiles::accept(std::uint64_t /*index*/, std::span<const std::span<const std::byte>> pieces,
                                memory::Record& record) const {
  const auto bytes = pieces.front();
  record.pin.reset();
  record.fields.assign(fields_.size(), {});
  if (bytes.empty()) return data_error("an empty file", "format");
  record.fields[0].bytes = bytes;
  record.bytes_read = bytes.size();
  return {};
}

Result<Inspection> GivenFiles::inspect() const {
  return config_error("inspect: datasets of added files cannot be inspected");
}

}  // namespace feedline::format
