// SPDX-License-Identifier: Apache-2.0
#pragma once

// The samples of a folder of class folders as a table, in memory and on disk the same bytes: kept in a file, it is
// mapped, so that a dataset of millions of files opens without looking at one of them.

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

// What its file is; another format number with every change of its layout, drawn in folder_index.cpp.
inline constexpr cache::FrameKind kFolderIndex{0x64'6c'66'6c'64'65'65'66, 2};  // "feedlfld"

// Immutable; any thread may read.
class FolderIndex {
 public:
  static FolderIndex build(const std::string& root, const FolderListing& listing);
  // Takes an index file's bytes, which stay as long as `pin`. nullopt unless it is whole, undamaged, of this root, and
  // all its numbers lie inside it.
  static std::optional<FolderIndex> parse(std::span<const std::byte> file, std::shared_ptr<const void> pin,
                                          const std::string& root);

  const ListedFolders& folders() const { return folders_; }

  // Requires: numbers below the counts.
  std::uint64_t samples() const { return paths_.size(); }
  std::uint64_t classes() const { return class_ends_.size(); }
  std::string_view path(std::uint64_t sample) const { return paths_[sample]; }
  std::string_view class_name(std::uint64_t label) const { return names_[label]; }
  std::uint64_t class_of(std::uint64_t sample) const;
  // Where the listing said it: the object's version, and its size.
  std::optional<storage::Version> version(std::uint64_t sample) const;
  std::optional<std::uint64_t> bytes(std::uint64_t sample) const;
  std::uint64_t fingerprint() const { return fingerprint_; }
  std::span<const std::byte> file_bytes() const { return file_; }
  bool is_mapped() const { return pin_ != nullptr; }

 private:
  FolderIndex() = default;
  bool find_sections();
  bool is_consistent() const;

  memory::ByteBuffer buffer_;  // holds the bytes, unless pin_ does
  std::shared_ptr<const void> pin_;
  std::span<const std::byte> file_;
  std::uint64_t fingerprint_ = 0;
  TextList paths_, names_;
  std::span<const std::uint64_t> class_ends_;
  std::span<const ListedObject> objects_;  // of each sample, or none
  ListedFolders folders_;
};

// The index that is kept of this folder, in `directory` or, where that is empty, in the user's cache folder; nullopt:
// there is none, or none that is still true.
std::optional<FolderIndex> load_folder_index(const storage::Storage& storage, const std::string& root,
                                             const std::string& directory,
                                             std::chrono::seconds listing_age = kListingAge,
                                             const std::shared_ptr<cache::Notes>& notes = nullptr);
// The next one to load it finds none.
void forget_folder_index(const storage::Storage& storage, const std::string& root, const std::string& directory);
// Keeps it. An error only where `directory` was chosen: it is made again the next time.
Result<void> save_folder_index(const storage::Storage& storage, const FolderIndex& index, const std::string& root,
                               const std::string& directory, const std::shared_ptr<cache::Notes>& notes = nullptr);

}  // namespace feedline::format
