// SPDX-License-Identifier: Apache-2.0
#include "format/annotations/sample_pieces.h"

#include <algorithm>
#include <utility>

namespace feedline::format {
namespace {

constexpr std::size_t kMostDepth = 16;

Result<void> add_files(const storage::Storage& storage, const std::string& folder, const std::string& prefix,
                       std::size_t depth, std::vector<std::string>& files) {
  if (depth > kMostDepth)
    return config_error("'" + folder + "' is nested more than " + std::to_string(kMostDepth) + " folders deep");
  FEEDLINE_TRY(const auto entries, storage.list(folder));
  for (const storage::Entry& entry : entries) {
    const std::string path = prefix + entry.name;
    if (!entry.is_directory)
      files.push_back(path);
    else
      FEEDLINE_CHECK_OK(add_files(storage, storage.below(folder, entry.name), path + "/", depth + 1, files));
  }
  return {};
}

}  // namespace

Result<void> read_pieces(const storage::Storage& storage, std::span<const std::string> paths, memory::Record& record,
                         std::vector<std::span<const std::byte>>& pieces, std::size_t& failed) {
  pieces.clear();
  if (record.more.size() + 1 < paths.size()) record.more.resize(paths.size() - 1);
  std::uint64_t total = 0;
  for (failed = 0; failed < paths.size(); ++failed) {
    memory::ByteBuffer& buffer = failed == 0 ? record.storage : record.more[failed - 1];
    FEEDLINE_TRY(const auto bytes, storage.read_all(paths[failed], buffer, record.most_bytes - total));
    total += bytes.size();
    pieces.push_back(bytes);
  }
  return {};
}

Result<std::vector<std::string>> files_below(const storage::Storage& storage, const std::string& folder) {
  std::vector<std::string> files;
  if (storage.has_flat_names()) {
    FEEDLINE_TRY(auto tree, storage.list_below(folder, storage::Depth::kAll));
    for (storage::StoredBelow& object : tree.objects) files.push_back(std::move(object.path));
  } else {
    FEEDLINE_CHECK_OK(add_files(storage, folder, "", 0, files));
  }
  std::ranges::sort(files);
  return files;
}

Result<std::string> read_text(const storage::Storage& storage, const std::string& path) {
  memory::ByteBuffer buffer;
  FEEDLINE_TRY(const auto bytes, storage.read_all(path, buffer, kMostText));
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

}  // namespace feedline::format
