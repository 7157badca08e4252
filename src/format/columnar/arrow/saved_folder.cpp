// SPDX-License-Identifier: Apache-2.0
#include "format/columnar/arrow/saved_folder.h"

#include <string_view>

#include "memory/record.h"
#include "text/json_value.h"

namespace feedline::format {
namespace {

using text::JsonValue;
using text::parse_json;

constexpr std::string_view kState = "state.json", kSplits = "dataset_dict.json";
constexpr std::uint64_t kMostJson = 64 << 20;

Result<JsonValue> read_json(const std::string& path, const storage::Storage& storage) {
  memory::ByteBuffer buffer;
  FEEDLINE_TRY(const auto bytes, storage.read_all(path, buffer, kMostJson));
  auto json = parse_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  if (json) return std::move(*json);
  auto error = data_error("the file is not valid JSON", "format");
  error.error().where.shard = path;
  return error;
}

std::vector<std::string> texts_of(const JsonValue* list) {
  std::vector<std::string> texts;
  if (list != nullptr)
    for (const JsonValue& one : list->items)
      if (one.kind == JsonValue::Kind::kText) texts.push_back(one.text);
  return texts;
}

Result<std::string> folder_of_split(const std::string& folder, const storage::Storage& storage) {
  FEEDLINE_TRY(const JsonValue json, read_json(storage.below(folder, kSplits), storage));
  const auto splits = texts_of(json.find("splits"));
  if (splits.size() == 1) return storage.below(folder, splits.front());
  std::string names;
  for (const std::string& name : splits) names += (names.empty() ? "" : ", ") + name;
  if (splits.empty()) return config_error("'" + folder + "' has no splits");
  return config_error("'" + folder + "' has several splits (" + names + "); open one of them: '" +
                      storage.below(folder, splits.front()) + "'");
}

}  // namespace

bool is_saved_folder(const std::string& folder, const storage::Storage& storage) {
  return storage.stat(storage.below(folder, kState)) || storage.stat(storage.below(folder, kSplits));
}

Result<std::vector<std::string>> files_of_saved(const std::string& given, const storage::Storage& storage) {
  std::string folder = given;
  while (folder.size() > 1 && folder.ends_with('/')) folder.pop_back();
  if (!storage.stat(storage.below(folder, kState))) {
    FEEDLINE_TRY(folder, folder_of_split(folder, storage));
  }
  FEEDLINE_TRY(const JsonValue state, read_json(storage.below(folder, kState), storage));
  const JsonValue* const chosen = state.find("_indices_data_files");
  if (chosen != nullptr && !chosen->items.empty())
    return config_error(
        "'" + folder +
        "' has an indices mapping, which this version does not support; save it again after flatten_indices()");
  std::vector<std::string> files;
  const JsonValue* const named = state.find("_data_files");
  if (named != nullptr)
    for (const JsonValue& one : named->items) {
      const JsonValue* const name = one.find("filename");
      if (name == nullptr || name->text.empty()) continue;
      if (name->text.contains("..") || name->text.starts_with('/'))
        return config_error("'" + folder + "' names a file outside the folder: '" + name->text + "'");
      files.push_back(storage.below(folder, name->text));
    }
  if (!files.empty()) return files;
  return config_error("'" + storage.below(folder, kState) + "' names no files");
}

}  // namespace feedline::format
