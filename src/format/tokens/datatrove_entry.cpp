// SPDX-License-Identifier: Apache-2.0
#include "format/tokens/datatrove_entry.h"

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "format/sources/source_list.h"
#include "format/tokens/datatrove_index.h"
#include "format/tokens/indexed_token_format.h"

namespace feedline::format {
namespace {

constexpr std::string_view kWhat = "token file of datatrove (.ds)";

// Recognises files by name, without requests.
Result<bool> is_datatrove(const std::string& source, const storage::Storage& storage) {
  const std::string part = first_of_list(source, storage);
  return std::string_view(part).substr(0, part.find('?')).ends_with(".ds");
}

// The tokens have 2 or 4 bytes; the index contains their number.
Result<DType> dtype_of(const std::string& path, std::uint64_t tokens, const storage::Storage& storage) {
  FEEDLINE_TRY(const storage::ObjectStat stat, storage.stat(path));
  if (stat.bytes == 2 * tokens) return DType::kUint16;
  if (stat.bytes == 4 * tokens) return DType::kUint32;
  return DatatroveIndex::damaged("the index describes " + std::to_string(tokens) + " tokens, but the .ds file has " +
                                     std::to_string(stat.bytes) + " bytes, which are neither 2 nor 4 per token",
                                 path);
}

Result<IndexedTokens> open_part(const std::string& path, const OpenOptions& options) {
  FEEDLINE_TRY(auto index, DatatroveIndex::open(name_with_end(path, ".index"), *options.storage));
  const std::uint64_t tokens = index->tokens();
  FEEDLINE_TRY(const DType dtype, dtype_of(path, tokens, *options.storage));
  FEEDLINE_TRY(auto files, TokenFiles::open({{path}}, dtype, options.storage));
  FEEDLINE_TRY(auto loss_mask, open_loss_mask(name_with_end(path, ".loss"), tokens, options.storage));
  return IndexedTokens{std::move(index), std::move(files), std::move(loss_mask)};
}

Result<std::shared_ptr<const Format>> open_files(const std::string& source, const OpenOptions& options) {
  if (!options.fields.empty())
    return config_error("fields: token files of datatrove always have the field tokens; omit fields=");
  FEEDLINE_TRY(const auto paths, shards_of(source, *options.storage, kWhat));
  std::vector<IndexedTokens> parts;
  for (const std::string& path : paths) {
    FEEDLINE_TRY(auto part, open_part(path, options));
    parts.push_back(std::move(part));
  }
  FEEDLINE_CHECK_OK(check_loss_masks(parts, paths, ".ds.loss"));
  return IndexedTokenFormat::make("datatrove", "documents", std::move(parts));
}

Result<Inspection> inspect_files(const std::string& source, const OpenOptions& options) {
  return inspect_indexed_tokens("datatrove", open_files(source, options));
}

}  // namespace

const FormatEntry& datatrove_entry() {
  static constexpr FormatEntry kEntry{
      .name = "datatrove", .sniff = is_datatrove, .open = open_files, .inspect = inspect_files};
  return kEntry;
}

}  // namespace feedline::format
