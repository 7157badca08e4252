// SPDX-License-Identifier: Apache-2.0
#include "format/row_columns/index_file.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>

#include "format/sources/source_list.h"

namespace feedline::format {
namespace {

constexpr std::string_view kName = "index.json";

// Ignores the query of a URL.
bool is_index(std::string_view source) {
  source = source.substr(0, source.find('?'));
  return source == kName || (source.ends_with(kName) && source[source.size() - kName.size() - 1] == '/');
}

}  // namespace

Result<IndexLocation> index_location(const std::string& source, const storage::Storage& storage) {
  if (source.empty()) return config_error("the list of datasets has an empty name");
  if (is_index(source)) {
    const std::size_t slash = source.substr(0, source.find('?')).rfind('/');
    return IndexLocation{source, slash == source.npos ? "." : source.substr(0, std::max<std::size_t>(slash, 1))};
  }
  std::string folder = source;
  while (folder.size() > 1 && folder.ends_with('/')) folder.pop_back();
  return IndexLocation{storage.below(folder, kName), folder};
}

Result<std::vector<std::string>> index_sources(const std::string& source, const storage::Storage& storage) {
  return names_of_list(source, storage, "dataset", true);
}

bool holds_shards(const std::string& source, const storage::Storage& storage,
                  const std::function<bool(std::string_view name)>& is_shard) {
  if (storage.is_remote() || !storage.is_directory(source).value_or(false)) return false;
  const auto entries = storage.list(source);
  return entries && std::ranges::any_of(*entries, [&](const storage::Entry& entry) {
           return !entry.is_directory && is_shard(entry.name);
         });
}

Result<std::string_view> read_index_file(const IndexLocation& location, const storage::Storage& storage,
                                         memory::ByteBuffer& room) {
  constexpr std::uint64_t kMostBytes = std::uint64_t{8} << 30U;  // enough for millions of shards at 1 KB each
  const auto stored = storage.is_remote() ? Result<storage::ObjectStat>() : storage.stat(location.index);
  if (!stored && stored.error().system_errno == ENOENT)
    return config_error("the folder '" + location.folder +
                        "' has no index.json, which is written last: wait until the writer finishes, or open single "
                        "shards with the library that wrote them");
  FEEDLINE_TRY(const auto bytes, storage.read_all(location.index, room, kMostBytes));
  if (bytes.empty()) {
    auto error = data_error("index.json is empty: its writer did not finish", "format");
    error.error().where.shard = location.index;
    return error;
  }
  return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

Result<bool> begins_with_key(const std::string& source, const storage::Storage& storage,
                             std::initializer_list<std::string_view> keys) {
  const std::string first = first_of_list(source, storage);
  if (first.empty() || (storage.is_remote() && !is_index(first))) return false;
  if (!is_index(first))
    if (const auto folder = storage.is_directory(first); !folder || !*folder) return false;
  FEEDLINE_TRY(const IndexLocation location, index_location(first, storage));
  const auto reader = storage.open(location.index, storage::Access::kRead);
  if (!reader) return false;  // opening it reports the error
  std::array<std::byte, 256> start;
  const auto got = (*reader)->read_at(0, start);
  if (!got) return false;
  std::string_view text(reinterpret_cast<const char*>(start.data()), *got);
  const auto skip = [&text](std::string_view what) {
    text.remove_prefix(std::min(text.size(), text.find_first_not_of(what)));
  };
  skip(" \t\r\n");
  if (!text.starts_with('{')) return false;
  text.remove_prefix(1);
  skip(" \t\r\n");
  return std::ranges::any_of(keys, [&](std::string_view key) {
    return text.starts_with('"') && text.substr(1).starts_with(key) && text.substr(1 + key.size()).starts_with('"');
  });
}

}  // namespace feedline::format
