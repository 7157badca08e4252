// SPDX-License-Identifier: Apache-2.0
#include "format/numpy_files/numpy_entry.h"

#include <array>
#include <string_view>
#include <vector>

#include "format/numpy_files/numpy_format.h"
#include "format/sources/source_list.h"

namespace feedline::format {
namespace {

constexpr std::string_view kWhat = ".npy or .npz file";

bool has_name_of_arrays(std::string_view path) {
  path = path.substr(0, path.find('?'));  // strip a URL's query
  return path.ends_with(".npy") || path.ends_with(".npz");
}

// Does not send requests: remote files are recognised by name, or need format=. Archives must have the extension .npz,
// because other kinds of files are also zip archives.
Result<bool> is_numpy(const std::string& source, const storage::Storage& storage) {
  const std::string part = first_of_list(source, storage);
  if (storage.is_remote() || is_list(split_list(source).front())) return has_name_of_arrays(part);
  if (const auto folder = storage.is_directory(part); !folder || *folder) return false;
  if (has_name_of_arrays(part)) return true;
  const auto reader = storage.open(part, storage::Access::kRead);
  if (!reader) return false;  // opening the file reports the error
  std::array<std::byte, 6> front;
  const auto got = (*reader)->read_at(0, front);
  return got && begins_as_npy(std::span(front).first(*got));
}

Result<std::shared_ptr<const Format>> open_files(const std::string& source, const OpenOptions& options) {
  FEEDLINE_TRY(const auto files, shards_of(source, *options.storage, kWhat));
  return open_numpy(source, files, options);
}

Result<Inspection> inspect_files(const std::string& source, const OpenOptions& options) {
  FEEDLINE_TRY(const auto files, shards_of(source, *options.storage, kWhat));
  return inspect_numpy(source, files, options);
}

}  // namespace

const FormatEntry& numpy_entry() {
  static constexpr FormatEntry kEntry{"numpy", is_numpy, open_files, inspect_files};
  return kEntry;
}

}  // namespace feedline::format
