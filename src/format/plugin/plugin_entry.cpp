// SPDX-License-Identifier: Apache-2.0
#include "format/plugin/plugin_entry.h"

#include <utility>

#include "base/check.h"
#include "format/plugin/plugin_formats.h"
#include "format/plugin/plugin_record_format.h"
#include "format/shards/finding.h"
#include "format/sources/folder_files.h"
#include "format/sources/source_list.h"

namespace feedline::format {
namespace {

// Sends no requests: for remote sources, the name decides.
const feedline_format_v1* format_of_source(const std::string& source, const storage::Storage& storage) {
  if (plugin_format_names().empty()) return nullptr;  // does not list folders
  const std::string first = first_of_list(source, storage);
  if (const auto* const format = plugin_format_of_file(first)) return format;
  if (storage.is_remote() || !storage.is_directory(first).value_or(false)) return nullptr;
  const auto file =
      first_data_file(first, storage, [](std::string_view name) { return plugin_format_of_file(name) != nullptr; });
  return file ? plugin_format_of_file(*file) : nullptr;
}

Result<bool> is_of_plugin(const std::string& source, const storage::Storage& storage) {
  return format_of_source(source, storage) != nullptr;
}

struct Found {
  const feedline_format_v1& format;
  std::vector<std::string> files;
};

Result<Found> find_files(const std::string& source, const OpenOptions& options) {
  const storage::Storage& storage = *options.storage;
  const auto* const format = options.format.empty() ? format_of_source(source, storage) : plugin_format(options.format);
  FEEDLINE_CHECK(format != nullptr);
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
  memory::Record record;
  record.most_bytes = memory::usual_sample_limit();
  for (std::uint64_t i = 0; i < format->size(); ++i) {
    if (auto read = format->read(i, record); !read) {
      const Error& error = read.error();
      findings.add(
          {"unreadable_sample", Severity::kError, error.where.shard, error.where.key, error.where.offset, error.what});
      continue;
    }
    for (const memory::Record::Field& field : record.fields) inspection.bytes += field.bytes.size();
  }
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
