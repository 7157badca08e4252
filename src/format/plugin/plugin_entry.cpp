// SPDX-License-Identifier: Apache-2.0
#include "format/plugin/plugin_entry.h"

#include <algorithm>
#include <map>
#include <utility>

#include "format/plugin/plugin_formats.h"
#include "format/plugin/plugin_record_format.h"
#include "format/shards/finding.h"
#include "format/sources/folder_files.h"
#include "format/sources/source_list.h"

namespace feedline::format {
namespace {

// lists_remote: whether a remote folder is listed; otherwise no requests are sent, and the name decides.
const feedline_format_v1* format_of_source(const std::string& source, const storage::Storage& storage,
                                           bool lists_remote) {
  if (plugin_format_names().empty()) return nullptr;  // does not list folders
  const std::string first = first_of_list(source, storage);
  if (const auto* const format = plugin_format_of_file(first)) return format;
  if ((storage.is_remote() && !lists_remote) || !storage.is_directory(first).value_or(false)) return nullptr;
  const auto file =
      first_data_file(first, storage, [](std::string_view name) { return plugin_format_of_file(name) != nullptr; });
  return file ? plugin_format_of_file(*file) : nullptr;
}

Result<bool> is_of_plugin(const std::string& source, const storage::Storage& storage) {
  return format_of_source(source, storage, false) != nullptr;
}

struct Found {
  const feedline_format_v1& format;
  std::vector<std::string> files;
};

Result<Found> find_files(const std::string& source, const OpenOptions& options) {
  const storage::Storage& storage = *options.storage;
  const auto* const format =
      options.format.empty() ? format_of_source(source, storage, true) : plugin_format(options.format);
  if (format == nullptr) return config_error("no file has the extension of a plugin's format");
  const bool is_file = storage.is_remote() && (is_list(source) || plugin_format_of_file(source) != nullptr);
  if (is_file || !storage.is_directory(source).value_or(false)) {
    FEEDLINE_TRY(auto files, shards_of(source, storage, "file of the format '" + std::string(format->name) + "'"));
    return Found{*format, std::move(files)};
  }
  const auto is_data = [format](std::string_view name) { return plugin_format_of_file(name) == format; };
  const std::string end = format->extension_count == 0 ? "" : "." + std::string(format->extensions[0]);
  FEEDLINE_TRY(auto files, files_of_folder(source, storage, is_data, end));
  return Found{*format, std::move(files)};
}

Result<std::shared_ptr<const Format>> open_files(const std::string& source, const OpenOptions& options) {
  FEEDLINE_TRY(const Found found, find_files(source, options));
  return PluginRecordFormat::open(found.format, source, found.files, options);
}

// Reads every sample.
Result<Inspection> inspect_files(const std::string& source, const OpenOptions& options) {
  FEEDLINE_TRY(const Found found, find_files(source, options));
  FEEDLINE_TRY(const auto format, PluginRecordFormat::open(found.format, source, found.files, options));
  Inspection inspection;
  inspection.format = found.format.name;
  inspection.samples = format->size();
  inspection.shards = found.files.size();
  for (const FieldDescription& field : format->fields()) inspection.fields.push_back(field.name);
  Findings findings;
  std::map<std::string, std::uint64_t> extensions;
  bool is_first = true;
  memory::Record record;
  record.most_bytes = memory::usual_sample_limit();
  for (std::uint64_t i = 0; i < format->size(); ++i) {
    if (auto read = format->read(i, record); !read) {
      const Error& error = read.error();
      findings.add(
          {"bad_sample", Severity::kError, error.where.shard, error.where.key, error.where.offset, error.what});
      continue;
    }
    bool has_image = false;
    for (std::size_t j = 0; j < record.fields.size(); ++j) {
      const FieldDescription& field = format->fields()[j];
      const std::uint64_t bytes = field.kind == FieldKind::kInteger ? 1 : record.fields[j].bytes.size();
      inspection.bytes += bytes;
      ++extensions[field.name];
      if (field.kind != FieldKind::kImage || record.fields[j].absent || std::exchange(has_image, true)) continue;
      inspection.smallest_bytes = std::exchange(is_first, false) ? bytes : std::min(inspection.smallest_bytes, bytes);
      inspection.largest_bytes = std::max(inspection.largest_bytes, bytes);
    }
  }
  for (const auto& [name, count] : extensions) inspection.extensions.push_back({name, count});
  inspection.findings = findings.to_inspection();
  return inspection;
}

}  // namespace

const FormatEntry& plugin_entry() {
  static constexpr FormatEntry kEntry{
      "plugin",      is_of_plugin, open_files,
      inspect_files, false,        [](std::string_view name) { return plugin_format_of_file(name) != nullptr; }};
  return kEntry;
}

}  // namespace feedline::format
