// SPDX-License-Identifier: Apache-2.0
#pragma once

// The table of samples in a folder that contains class folders. The table has the same layout in memory and on disk.
// Index files are memory-mapped, so that datasets with millions of files open quickly.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "cache/frame.h"
#include "cache/notes.h"
#include "feedline/dataset.h"
#include "feedline/error.h"
#include "format/folder/folder_listing.h"
#include "format/folder/listed_folders.h"
#include "format/folder/text_list.h"
#include "memory/record.h"
#include "storage/storage.h"
#include "storage/version.h"

namespace feedline::format {

// Identifies index files. Increment the number whenever the layout in folder_index.cpp changes.
inline constexpr cache::FrameKind kFolderIndex{0x64'6c'66'6c'64'65'65'66, 2};  // "feedlfld"

// Immutable and thread-safe.
class FolderIndex {
 public:
  static FolderIndex build(const std::string& root, const FolderListing& listing);
  // Parses the bytes of an index file; `pin` keeps the bytes alive. Returns nullopt if the file is truncated or
  // damaged, belongs to a different root, or has an offset out of range.
  static std::optional<FolderIndex> parse(std::span<const std::byte> file, std::shared_ptr<const void> pin,
                                          const std::string& root);

  const ListedFolders& folders() const { return folders_; }

  // Requires: all indexes are in range.
  std::uint64_t samples() const { return paths_.size(); }
  std::uint64_t classes() const { return class_ends_.size(); }
  std::string_view path(std::uint64_t sample) const { return paths_[sample]; }
  std::string_view class_name(std::uint64_t label) const { return names_[label]; }
  std::uint64_t class_of(std::uint64_t sample) const;
  // Return the object's version and size, if the listing contains them.
  std::optional<storage::Version> version(std::uint64_t sample) const;
  std::optional<std::uint64_t> bytes(std::uint64_t sample) const;
  std::uint64_t fingerprint() const { return fingerprint_; }
  std::span<const std::byte> file_bytes() const { return file_; }
  bool is_mapped() const { return pin_ != nullptr; }

 private:
  FolderIndex() = default;
  bool find_sections();
  bool is_consistent() const;

  memory::ByteBuffer buffer_;  // owns the bytes, unless pin_ does
  std::shared_ptr<const void> pin_;
  std::span<const std::byte> file_;
  std::uint64_t fingerprint_ = 0;
  TextList paths_, names_;
  std::span<const std::uint64_t> class_ends_;
  std::span<const ListedObject> objects_;  // one per sample, or none
  ListedFolders folders_;
};

// Returns the stored index for this folder, or nullopt if there is no index or it is out of date. If `directory` is
// empty, searches the user's cache folder.
std::optional<FolderIndex> load_folder_index(const storage::Storage& storage, const std::string& root,
                                             const std::string& directory,
                                             std::chrono::seconds listing_age = kListingAge,
                                             const std::shared_ptr<cache::Notes>& notes = nullptr);
// Deletes the stored index.
void forget_folder_index(const storage::Storage& storage, const std::string& root, const std::string& directory);
// Stores the index. If storing fails, returns an error only if the user chose `directory`. Otherwise, an index that
// could not be stored is rebuilt the next time the folder is opened.
Result<void> save_folder_index(const storage::Storage& storage, const FolderIndex& index, const std::string& root,
                               const std::string& directory, const std::shared_ptr<cache::Notes>& notes = nullptr);

}  // namespace feedline::format
