// SPDX-License-Identifier: Apache-2.0
#pragma once

// The samples of a folder whose fields are found by patterns as a table, in memory and on disk the same bytes, as that
// of class folders (folder_index.h).

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

// What its file is; another format number with every change of its layout, drawn in pattern_index.cpp.
inline constexpr cache::FrameKind kPatternIndex{0x74'61'70'6c'64'65'65'66, 1};  // "feedlpat"

// Which samples a table is of: the folder, the fields by name and pattern, and what becomes of those that lack one.
struct PatternQuestion {
  std::string root;
  std::vector<FieldPattern> patterns;
  Missing missing = Missing::kError;

  std::string text() const;  // the same for no two of them
};

// Immutable; any thread may read.
class PatternIndex {
 public:
  static PatternIndex build(const PatternQuestion& question, const PatternListing& listing);
  // Takes an index file's bytes, which stay as long as `pin`. nullopt unless it is whole, undamaged, of this question,
  // and all its numbers lie inside it.
  static std::optional<PatternIndex> parse(std::span<const std::byte> file, std::shared_ptr<const void> pin,
                                           const PatternQuestion& question);

  const ListedFolders& folders() const { return folders_; }
  // Requires: numbers below the counts.
  std::uint64_t samples() const { return keys_.size(); }
  std::string_view key(std::uint64_t sample) const { return keys_[sample]; }
  bool has(std::uint64_t sample, std::size_t field) const {
    return (lacks_[field * words() + sample / 64] >> (sample % 64) & 1) == 0;
  }
  bool have_all(std::size_t field) const;  // do all samples have it?
  std::uint64_t left_out() const { return left_out_; }
  std::uint64_t fingerprint() const { return fingerprint_; }
  std::span<const std::byte> file_bytes() const { return file_; }
  bool is_mapped() const { return pin_ != nullptr; }

 private:
  PatternIndex() = default;
  std::uint64_t words() const { return (samples() + 63) / 64; }
  bool find_sections();

  memory::ByteBuffer buffer_;  // holds the bytes, unless pin_ does
  std::shared_ptr<const void> pin_;
  std::span<const std::byte> file_;
  std::uint64_t fields_ = 0, left_out_ = 0, fingerprint_ = 0;
  TextList keys_, names_;
  std::span<const std::uint64_t> lacks_;  // per field a bit per sample
  ListedFolders folders_;
};

// The index that is kept, in `directory` or, where that is empty, in the user's cache folder; nullopt: there is none,
// or none that is still true.
std::optional<PatternIndex> load_pattern_index(const storage::Storage& storage, const PatternQuestion& question,
                                               const std::string& directory,
                                               std::chrono::seconds listing_age = kListingAge,
                                               const std::shared_ptr<cache::Notes>& notes = nullptr);
// Keeps it. An error only where `directory` was chosen: it is made again the next time.
Result<void> save_pattern_index(const storage::Storage& storage, const PatternIndex& index,
                                const PatternQuestion& question, const std::string& directory,
                                const std::shared_ptr<cache::Notes>& notes = nullptr);

}  // namespace feedline::format
