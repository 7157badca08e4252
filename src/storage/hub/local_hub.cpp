// SPDX-License-Identifier: Apache-2.0
#include "storage/hub/local_hub.h"

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace feedline::storage {
namespace {

namespace fs = std::filesystem;

// Returns the name of the blob that a snapshot's file links to; empty for a copy.
std::string blob_of(const fs::path& file) {
  std::error_code failed;
  const fs::path target = fs::read_symlink(file, failed);
  return failed ? std::string() : target.filename().string();
}

}  // namespace

std::string LocalHub::folder_of(const HubName& name) const {
  std::string repository = name.repository;
  repository.replace(repository.find('/'), 1, "--");
  return folder_ + "/datasets--" + repository;
}

std::optional<std::string> LocalHub::commit_of(const HubName& name) const {
  if (folder_.empty()) return {};
  std::ifstream file(folder_of(name) + "/refs/" + name.revision);
  std::string commit;
  if (!(file >> commit) || !is_commit(commit)) return {};
  return commit;
}

std::optional<std::string> LocalHub::file(const HubName& name, std::uint64_t bytes) const {
  if (folder_.empty()) return {};
  std::string path = folder_of(name) + "/snapshots/" + name.revision + "/" + name.path;
  std::error_code failed;
  const auto size = fs::file_size(path, failed);
  if (failed || size != bytes) return {};
  return path;
}

Result<std::vector<HubFile>> LocalHub::files(const HubName& name) const {
  const fs::path root = folder_of(name) + "/snapshots/" + name.revision;
  std::vector<HubFile> files;
  std::error_code failed;
  for (auto entry = fs::recursive_directory_iterator(root, failed); !failed && entry != fs::end(entry);
       entry.increment(failed)) {
    std::error_code missing;  // a link to a blob that was deleted
    const bool is_folder = entry->is_directory(missing) && !entry->is_symlink(missing);
    const std::uint64_t bytes = is_folder ? 0 : entry->file_size(missing);
    if (missing) continue;
    files.push_back({entry->path().lexically_relative(root).string(), bytes, is_folder ? "" : blob_of(entry->path()),
                     false, is_folder});
  }
  if (!failed) return files;
  auto error =
      storage_error("HF_HUB_OFFLINE=1 forbids requests, and this revision is not in the local cache '" + folder_ +
                        "': unset it, or download the dataset first with `hf download --repo-type "
                        "dataset " +
                        name.repository + "`",
                    failed.value());
  error.error().where.shard = name.root();
  return error;
}

}  // namespace feedline::storage
