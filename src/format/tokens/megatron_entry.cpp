// SPDX-License-Identifier: Apache-2.0
#include "format/tokens/megatron_entry.h"

#include <array>
#include <string_view>

#include "format/sources/source_list.h"
#include "format/tokens/megatron_format.h"

namespace feedline::format {
namespace {

constexpr std::string_view kWhat = "Megatron index (.idx)";

bool has_name_of_index(std::string_view path) { return path.substr(0, path.find('?')).ends_with(".idx"); }

// Recognises remote files and lists by name, without requests.
Result<bool> is_megatron(const std::string& source, const storage::Storage& storage) {
  const std::string part = first_of_list(source, storage);
  if (!has_name_of_index(part)) return false;
  if (storage.is_remote() || is_list(split_list(source).front())) return true;
  const auto reader = storage.open(part, storage::Access::kRead);
  if (!reader) return true;  // opening the file reports the error
  std::array<std::byte, 9> front;
  const auto got = (*reader)->read_at(0, front);
  return got && begins_as_megatron_index(std::span(front).first(*got));
}

Result<std::shared_ptr<const Format>> open_files(const std::string& source, const OpenOptions& options) {
  if (!options.fields.empty()) return config_error("fields: Megatron files always have the field tokens; omit fields=");
  FEEDLINE_TRY(const auto indexes, shards_of(source, *options.storage, kWhat));
  return MegatronFormat::open(indexes, options.documents, options.storage);
}

Result<Inspection> inspect_files(const std::string& source, const OpenOptions& options) {
  const auto format = open_files(source, options);
  if (format) return (*format)->inspect();
  const Error& error = format.error();
  if (error.where.shard.empty()) return std::unexpected(error);  // not about the contents of a file
  Inspection inspection{.format = "megatron"};
  inspection.findings.push_back({.code = error.code == ErrorCode::kStorage ? "unreadable_file" : "damaged_index",
                                 .severity = "error",
                                 .shard = error.where.shard,
                                 .text = error.what});
  return inspection;
}

}  // namespace

const FormatEntry& megatron_entry() {
  static constexpr FormatEntry kEntry{
      .name = "megatron", .sniff = is_megatron, .open = open_files, .inspect = inspect_files, .has_documents = true};
  return kEntry;
}

}  // namespace feedline::format
