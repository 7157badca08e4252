// SPDX-License-Identifier: Apache-2.0
#include "format/tokens/datatrove_index.h"

#include <limits>
#include <utility>

namespace feedline::format {
namespace {

constexpr std::uint64_t kMostTokens = std::numeric_limits<std::int64_t>::max() / 16;

}  // namespace

std::unexpected<Error> DatatroveIndex::damaged(const std::string& what, const std::string& path) {
  Error error = data_error(what, "format").error();
  error.where.shard = path;
  return std::unexpected(std::move(error));
}

Result<std::shared_ptr<const DatatroveIndex>> DatatroveIndex::open(const std::string& path,
                                                                   const storage::Storage& storage) {
  const std::shared_ptr<DatatroveIndex> index(new DatatroveIndex);
  FEEDLINE_TRY(auto reader, storage.open(path, storage::Access::kMap));
  index->reader_ = std::move(reader);
  FEEDLINE_TRY(const storage::ObjectStat stat, index->reader_->stat());
  FEEDLINE_TRY(const auto mapped, index->reader_->view(0, stat.bytes));
  std::span<const std::byte> bytes;
  if (mapped) {
    bytes = *mapped;
  } else {
    index->memory_.resize(stat.bytes);
    FEEDLINE_TRY(const std::size_t got, index->reader_->read_at(0, index->memory_));
    bytes = std::span(index->memory_).first(got);
  }
  if (bytes.size() % sizeof(std::uint64_t) != 0)
    return damaged("the index has " + std::to_string(bytes.size()) + " bytes, which are not a multiple of 8", path);
  index->set(bytes.data(), bytes.size() / sizeof(std::uint64_t));
  std::uint64_t last = 0;
  for (std::uint64_t i = 0; i < index->samples(); ++i) {
    const std::uint64_t end = index->end_of(i);
    if (end < last || end > kMostTokens)
      return damaged("document " + std::to_string(i) + " ends at token " + std::to_string(end) +
                         ", but the document before it at token " + std::to_string(last),
                     path);
    last = end;
  }
  return index;
}

}  // namespace feedline::format
