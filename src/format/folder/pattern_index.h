// SPDX-License-Identifier: Apache-2.0
#pragma once

// The table of samples in a folder whose fields are found by patterns. Like the table for class folders
// (folder_index.h), this table has the same layout in memory and on disk.

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
#include "format/folder/listed_folders.h"
#include "format/folder/pattern_listing.h"
#include "format/folder/text_list.h"
#include "memory/record.h"
#include "storage/storage.h"

namespace feedline::format {

// Identifies index files. Increment the number whenever the layout in pattern_index.cpp changes.
inline constexpr cache::FrameKind kPatternIndex{0x74'61'70'6c'64'65'65'66, 1};  // "feedlpat"

// The parameters that determine a table's contents: the folder, the names and patterns of fields, and how samples that
// lack a field are treated.
struct PatternQuestion {
  std::string root;
  std::vector<FieldPattern> patterns;
  Missing missing = Missing::kError;

  std::string text() const;  // unique for each question
};

// Immutable and thread-safe.
class PatternIndex {
 public:
  static PatternIndex build(const PatternQuestion& question, const PatternListing& listing);
  // Parses the bytes of an index file, which `pin` keeps alive. Returns nullopt if the file is truncated or damaged,
  // was built for different parameters, or has an offset out of range.
  static std::optional<PatternIndex> parse(std::span<const std::byte> file, std::shared_ptr<const void> pin,
                                           const PatternQuestion& question);

  const ListedFolders& folders() const { return folders_; }
  // Requires: all indexes are in range.
  std::uint64_t samples() const { return keys_.size(); }
  std::string_view key(std::uint64_t sample) const { return keys_[sample]; }
  bool has(std::uint64_t sample, std::size_t field) const {
    return (lacks_[field * words() + sample / 64] >> (sample % 64) & 1) == 0;
  }
  bool have_all(std::size_t field) const;  // whether all samples have the field
  std::uint64_t left_out() const { return left_out_; }
  std::uint64_t fingerprint() const { return fingerprint_; }
  std::span<const std::byte> file_bytes() const { return file_; }
  bool is_mapped() const { return pin_ != nullptr; }

 private:
  PatternIndex() = default;
  std::uint64_t words() const { return (samples() + 63) / 64; }
  bool find_sections();

  memory::ByteBuffer buffer_;  // owns the bytes, unless pin_ does
  std::shared_ptr<const void> pin_;
  std::span<const std::byte> file_;
  std::uint64_t fields_ = 0, left_out_ = 0, fingerprint_ = 0;
  TextList keys_, names_;
  std::span<const std::uint64_t> lacks_;  // per field, one bit per sample
  ListedFolders folders_;
};

// Returns the stored index, or nullopt if there is no index or it is out of date. If `directory` is empty, searches the
// user's cache folder.
std::optional<PatternIndex> load_pattern_index(const storage::Storage& storage, const PatternQuestion& question,
                                               const std::string& directory,
                                               std::chrono::seconds listing_age = kListingAge,
                                               const std::shared_ptr<cache::Notes>& notes = nullptr);
// Stores the index. If storing fails, returns an error only if the user chose `directory`. Otherwise, an index that
// cannot be stored is rebuilt the next time the folder is opened.
Result<void> save_pattern_index(const storage::Storage& storage, const PatternIndex& index,
                                const PatternQuestion& question, const std::string& directory,
                                const std::shared_ptr<cache::Notes>& notes = nullptr);

}  // namespace feedline::format
