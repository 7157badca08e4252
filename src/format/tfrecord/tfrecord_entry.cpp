// SPDX-License-Identifier: Apache-2.0
#include "format/tfrecord/tfrecord_entry.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "format/sources/folder_files.h"
#include "format/sources/sample_name.h"
#include "format/sources/source_list.h"
#include "format/tfrecord/record_frame.h"
#include "format/tfrecord/tfrecord_format.h"
#include "format/tfrecord/tfrecord_inspection.h"

namespace feedline::format {
namespace {

constexpr std::string_view kWhat = "TFRecord file";

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Returns whether a name ends like "train-00000-of-01024", as TensorFlow's tools name shards.
bool is_numbered(std::string_view name) {
  const auto take_number = [&name] {
    const std::size_t digits = name.size() - (name.find_last_not_of("0123456789") + 1);
    name.remove_suffix(digits);
    return digits > 0;
  };
  if (name.empty() || !is_digit(name.back()) || !take_number() || !name.ends_with("-of-")) return false;
  name.remove_suffix(4);
  return take_number() && name.ends_with('-');
}

// Checks the name, without the query of a URL.
bool has_name_of_records(std::string_view path) {
  path = path.substr(0, path.find('?'));
  const std::string name = to_lower(path.substr(path.rfind('/') + 1));
  if (name.ends_with(".tar") || name.ends_with(".tgz") || name.ends_with(".tar.gz")) return false;
  return name.contains(".tfrecord") || name.contains(".tfrec") || is_numbered(name);
}

// Returns whether a file begins with a length and the matching checksum.
bool begins_with_record(const storage::Storage& storage, const std::string& path) {
  const auto reader = storage.open(path, storage::Access::kRead);
  if (!reader) return false;  // opening the file reports the error
  std::array<std::byte, kRecordHeaderBytes> header;
  const auto got = (*reader)->read_at(0, header);
  return got && length_in_header(std::span(header).first(*got)).has_value();
}

// Does not send requests: remote files are recognised by name, or need format=.
Result<bool> is_tfrecord(const std::string& source, const storage::Storage& storage) {
  const std::string first = first_of_list(source, storage);
  if (storage.is_remote()) return has_name_of_records(first);
  const auto folder = storage.is_directory(first);
  if (!folder) return has_name_of_records(first);
  if (*folder) return first_data_file(first, storage, has_name_of_records).has_value();
  const std::string name = to_lower(first);
  if (name.ends_with(".tar")) return false;
  return has_name_of_records(first) || begins_with_record(storage, first);
}

Result<std::vector<std::string>> files_of_source(const std::string& source, const storage::Storage& storage) {
  // A request is needed to check whether a remote name is a folder, unless the name shows it.
  const bool is_shard = storage.is_remote() && (is_list(source) || has_name_of_records(source));
  if (is_shard || !storage.is_directory(source).value_or(false)) return shards_of(source, storage, kWhat);
  return files_of_folder(source, storage, has_name_of_records, "");
}

Result<std::shared_ptr<const Format>> open_records(const std::string& source, const OpenOptions& options) {
  FEEDLINE_TRY(const auto shards, files_of_source(source, *options.storage));
  return TfrecordFormat::open(source, shards, options);
}

Result<Inspection> inspect_records(const std::string& source, const OpenOptions& options) {
  FEEDLINE_TRY(const auto shards, files_of_source(source, *options.storage));
  return inspect_tfrecord(source, shards, options);
}

}  // namespace

const FormatEntry& tfrecord_entry() {
  static constexpr FormatEntry kEntry{"tfrecord",      is_tfrecord, open_records,
                                      inspect_records, false,       has_name_of_records};
  return kEntry;
}

}  // namespace feedline::format
