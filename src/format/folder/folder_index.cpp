// SPDX-License-Identifier: Apache-2.0
#include "format/folder/folder_index.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/check.h"
#include "cache/persisted_tables.h"
#include "decode/plugin/plugin_images.h"
#include "format/checksum.h"

namespace feedline::format {
namespace {

// The layout of an index file with S samples, C classes, F folders, P bytes of paths, N bytes of names and O objects,
// stored as a frame (cache/frame.h). O equals S if the listing describes the objects, otherwise O is 0.
//
//     numbers     S, C, F, P, N, fingerprint of the dataset, O
//     8 x S       end of each sample's path in the paths
//     8 x C       number of samples in each class and those before it
//     8 x C+F+1   end of each name in the names: the classes, the folders relative to the root, the listing's name
//     16 x F      size and modification time of each folder, read before it was listed
//     16 x O      size and tag of each sample's object
//     P           paths
//     N           names
enum Number : std::size_t { kSamples, kClasses, kFolders, kPathBytes, kNameBytes, kFingerprint, kObjects, kNumbers };

constexpr cache::TableKind kIndexes{kFolderIndex, ".feedline-folder-index"};

// The fingerprint does not depend on the root's path, so that copies of the dataset have the same fingerprint.
std::uint64_t fingerprint_of(const FolderListing& listing) {
  Fingerprint fingerprint;
  fingerprint.add("folder");
  for (const std::string& name : listing.classes) fingerprint.add(name);
  fingerprint.add(listing.class_ends);
  fingerprint.add(listing.paths);
  fingerprint.add(listing.path_ends);
  return fingerprint.value();
}

// Plugins add extensions of images, so that a listing without them is not used.
std::string name_of_listing(const std::string& root) {
  const std::string extensions = decode::plugin_image_extensions();
  return extensions.empty() ? root : root + " with images " + extensions;
}

}  // namespace

FolderIndex FolderIndex::build(const std::string& root, const FolderListing& listing) {
  std::string names;
  std::vector<std::uint64_t> name_ends;
  const auto add_name = [&](const std::string& name) { name_ends.push_back(names.append(name).size()); };
  for (const std::string& name : listing.classes) add_name(name);
  for (const ListedFolder& folder : listing.folders) add_name(folder.path);
  add_name(name_of_listing(root));
  const auto stats = stats_of(listing.folders);
  cache::FrameBuilder builder(
      kFolderIndex, {listing.samples(), listing.classes.size(), stats.size(), listing.paths.size(), names.size(),
                     fingerprint_of(listing), listing.objects.size()});
  builder.add(listing.path_ends);
  builder.add(listing.class_ends);
  builder.add(name_ends);
  builder.add(stats);
  builder.add(listing.objects);
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
  if (index.names_[index.names_.size() - 1] != name_of_listing(root)) return {};
  return index;
}

// Finds the sections in the order in which they are stored. No other function depends on the order of sections.
bool FolderIndex::find_sections() {
  cache::FrameReader reader(file_, kFolderIndex, kNumbers);
  const std::uint64_t samples = reader.count(kSamples), classes = reader.count(kClasses);
  const std::uint64_t folders = reader.count(kFolders), path_bytes = reader.count(kPathBytes);
  const std::uint64_t name_bytes = reader.count(kNameBytes);
  fingerprint_ = reader.number(kFingerprint);
  paths_.ends = reader.take<std::uint64_t>(samples);
  class_ends_ = reader.take<std::uint64_t>(classes);
  names_.ends = reader.take<std::uint64_t>(classes + folders + 1);
  folders_.stats = reader.take<ListedFolders::Stat>(folders);
  objects_ = reader.take<ListedObject>(reader.count(kObjects));
  const auto paths = reader.take<char>(path_bytes), names = reader.take<char>(name_bytes);
  paths_.text = {paths.data(), paths.size()};
  names_.text = {names.data(), names.size()};
  folders_.names = names_;
  folders_.first = classes;
  return reader.is_whole();
}

bool FolderIndex::is_consistent() const {
  return cache::is_undamaged(file_) && samples() > 0 && paths_.is_consistent() && names_.is_consistent() &&
         std::ranges::is_sorted(class_ends_) && !class_ends_.empty() && class_ends_.back() == samples() &&
         (objects_.empty() || objects_.size() == samples());
}

std::optional<storage::Version> FolderIndex::version(std::uint64_t sample) const {
  if (objects_.empty() || objects_[sample].tag == 0) return {};
  return storage::Version{objects_[sample].bytes, 0, objects_[sample].tag};
}

std::optional<std::uint64_t> FolderIndex::bytes(std::uint64_t sample) const {
  if (objects_.empty()) return {};
  return objects_[sample].bytes;
}

std::uint64_t FolderIndex::class_of(std::uint64_t sample) const {
  return static_cast<std::uint64_t>(std::ranges::upper_bound(class_ends_, sample) - class_ends_.begin());
}

std::optional<FolderIndex> load_folder_index(const storage::Storage& storage, const std::string& root,
                                             const std::string& directory, std::chrono::seconds listing_age,
                                             const std::shared_ptr<cache::Notes>& notes) {
  std::optional<FolderIndex> index;
  cache::PersistedTables(kIndexes, directory, notes).map(storage, root, [&](cache::PersistedTables::Bytes bytes) {
    index = FolderIndex::parse(bytes.file, std::move(bytes.pin), root);
    if (index && !index->folders().is_current(storage, root, listing_age)) index.reset();
    return index.has_value();
  });
  return index;
}

void forget_folder_index(const storage::Storage& storage, const std::string& root, const std::string& directory) {
  cache::PersistedTables(kIndexes, directory, nullptr).forget(storage, root);
}

Result<void> save_folder_index(const storage::Storage& storage, const FolderIndex& index, const std::string& root,
                               const std::string& directory, const std::shared_ptr<cache::Notes>& notes) {
  return cache::PersistedTables(kIndexes, directory, notes).save(storage, root, index.file_bytes());
}

}  // namespace feedline::format
