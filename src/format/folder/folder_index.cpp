// SPDX-License-Identifier: Apache-2.0
#include "format/folder/folder_index.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/check.h"
#include "cache/kept_tables.h"
#include "format/checksum.h"

namespace feedline::format {
namespace {

// An index file is a frame (cache/frame.h). S samples, C classes, F folders, P bytes of paths, N bytes of names.
//
//     numbers     S, C, F, P, N, fingerprint of the dataset
//     8 x S       end of each sample's path in the paths
//     8 x C       samples of the classes up to and with each
//     8 x C+F+1   end of each name in the names: the classes, the folders relative to the root, the root
//     16 x F      size and modification time of each folder, from before it was listed
//     P           paths
//     N           names
enum Number : std::size_t { kSamples, kClasses, kFolders, kPathBytes, kNameBytes, kFingerprint, kNumbers };

constexpr cache::TableKind kIndexes{kFolderIndex, ".feedline-folder-index"};

// Is each value at least the one before, and the last exactly `end`?
bool ascends_to(std::span<const std::uint64_t> values, std::uint64_t end) {
  return std::ranges::is_sorted(values) && !values.empty() && values.back() == end;
}

// Not the root's path: a copy of the dataset elsewhere is the same dataset.
std::uint64_t fingerprint_of(const FolderListing& listing) {
  Fingerprint fingerprint;
  fingerprint.add("folder");
  for (const std::string& name : listing.classes) fingerprint.add(name);
  fingerprint.add(listing.class_ends);
  fingerprint.add(listing.paths);
  fingerprint.add(listing.path_ends);
  return fingerprint.value();
}

}  // namespace

FolderIndex FolderIndex::build(const std::string& root, const FolderListing& listing) {
  std::string names;
  std::vector<std::uint64_t> name_ends;
  const auto add_name = [&](const std::string& name) { name_ends.push_back(names.append(name).size()); };
  for (const std::string& name : listing.classes) add_name(name);
  std::vector<FolderStat> stats;
  for (const FolderListing::Folder& folder : listing.folders) {
    add_name(folder.path);
    stats.push_back({folder.stat.bytes, folder.stat.mtime_ns});
  }
  add_name(root);
  cache::FrameBuilder builder(kFolderIndex, {listing.samples(), listing.classes.size(), stats.size(),
                                             listing.paths.size(), names.size(), fingerprint_of(listing)});
  builder.add(listing.path_ends);
  builder.add(listing.class_ends);
  builder.add(name_ends);
  builder.add(stats);
  builder.add(listing.paths);
  builder.add(names);
  FolderIndex index;
  index.file_ = builder.write(index.buffer_);
  FEEDLINE_CHECK(index.find_sections());
  return index;
}

std::optional<FolderIndex> FolderIndex::parse(std::span<const std::byte> file, std::shared_ptr<const void> pin,
                                              const std::string& root) {
  FolderIndex index;
  index.file_ = file;
  index.pin_ = std::move(pin);
  if (!index.find_sections() || !index.is_consistent()) return {};
  if (piece(index.names_, index.name_ends_, index.name_ends_.size() - 1) != root) return {};
  return index;
}

// The one place that knows the order of the sections.
bool FolderIndex::find_sections() {
  cache::FrameReader reader(file_, kFolderIndex, kNumbers);
  const std::uint64_t samples = reader.count(kSamples), classes = reader.count(kClasses);
  const std::uint64_t folders = reader.count(kFolders), path_bytes = reader.count(kPathBytes);
  const std::uint64_t name_bytes = reader.count(kNameBytes);
  fingerprint_ = reader.number(kFingerprint);
  path_ends_ = reader.take<std::uint64_t>(samples);
  class_ends_ = reader.take<std::uint64_t>(classes);
  name_ends_ = reader.take<std::uint64_t>(classes + folders + 1);
  folders_ = reader.take<FolderStat>(folders);
  const auto paths = reader.take<char>(path_bytes), names = reader.take<char>(name_bytes);
  paths_ = {paths.data(), paths.size()};
  names_ = {names.data(), names.size()};
  return reader.is_whole();
}

bool FolderIndex::is_consistent() const {
  return cache::is_undamaged(file_) && ascends_to(path_ends_, paths_.size()) && ascends_to(class_ends_, samples()) &&
         ascends_to(name_ends_, names_.size());
}

bool FolderIndex::is_current(const storage::Storage& storage, const std::string& root) const {
  for (std::size_t i = 0; i < folders_.size(); ++i) {
    const std::string_view path = piece(names_, name_ends_, classes() + i);
    const auto stat = storage.stat(path.empty() ? root : std::string(root).append("/").append(path));
    if (!stat || *stat != storage::ObjectStat{folders_[i].bytes, folders_[i].mtime_ns}) return false;
  }
  return true;
}

std::int64_t FolderIndex::changed_ns() const {
  return folders_.empty() ? 0 : std::ranges::max_element(folders_, {}, &FolderStat::mtime_ns)->mtime_ns;
}

std::uint64_t FolderIndex::class_of(std::uint64_t sample) const {
  return static_cast<std::uint64_t>(std::ranges::upper_bound(class_ends_, sample) - class_ends_.begin());
}

std::optional<FolderIndex> load_folder_index(const storage::Storage& storage, const std::string& root,
                                             const std::string& directory, const std::shared_ptr<cache::Notes>& notes) {
  std::optional<FolderIndex> index;
  cache::KeptTables(kIndexes, directory, notes).map(storage, root, [&](cache::KeptTables::Bytes bytes) {
    index = FolderIndex::parse(bytes.file, std::move(bytes.pin), root);
    if (index && !index->is_current(storage, root)) index.reset();
    return index.has_value();
  });
  return index;
}

Result<void> save_folder_index(const storage::Storage& storage, const FolderIndex& index, const std::string& root,
                               const std::string& directory, const std::shared_ptr<cache::Notes>& notes) {
  return cache::KeptTables(kIndexes, directory, notes).save(storage, root, index.file_bytes());
}

}  // namespace feedline::format
