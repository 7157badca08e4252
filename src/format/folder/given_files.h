// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <span>
#include <string>
#include <vector>

#include "format/format.h"

namespace feedline::format {

// An image file, specified by its path or as bytes in memory.
struct GivenFile {
  std::string path;                       // name in error messages; also the file's path, unless it is in memory
  std::span<const std::byte> bytes = {};  // the contents, or empty to read them from `path`
};

// Image files that are added during iteration. Unlike all other formats, the dataset can change: samples are added and
// removed. An index refers to the same file until the file is removed.
class GivenFiles final : public RecordFormat {
 public:
  explicit GivenFiles(std::shared_ptr<const storage::Storage> storage);

  // Adds files and returns the index of the first one. The other files get consecutive indexes after the first. Indexes
  // are never reused.
  std::uint64_t add(std::vector<GivenFile> files);
  // Keeps the owner of in-memory files alive as long as this object exists.
  void keep(std::shared_ptr<const void> owner);
  // Removes the files that were added by the add() call that returned `first`. Reads in progress complete; later reads
  // fail.
  void forget(std::uint64_t first);
  void forget_all();

  std::string_view name() const override { return "files"; }
  std::uint64_t size() const override { return kSize; }  // the upper bound of indexes, not the number of files
  const std::vector<FieldDescription>& fields() const override { return fields_; }
  const std::vector<std::string>& classes() const override { return classes_; }
  Result<void> read(std::uint64_t index, memory::Record& record) const override;
  Result<void> find_pieces(std::uint64_t index, std::vector<storage::Piece>& pieces) const override;
  Result<void> accept(std::uint64_t index, std::span<const std::span<const std::byte>> pieces,
                      memory::Record& record) const override;
  std::shared_ptr<const storage::Storage> storage() const override { return storage_; }
  Where where(std::uint64_t index) const override;
  std::uint64_t fingerprint() const override { return 0; }
  Result<Inspection> inspect() const override;

 private:
  static constexpr std::uint64_t kSize = std::uint64_t{1} << 62;
  // Looks up a file. Copies its path to `path` and, if the file is in memory, returns its contents. Returns nullopt if
  // the index is unknown.
  std::optional<std::span<const std::byte>> find(std::uint64_t index, std::string& path) const;

  const std::shared_ptr<const storage::Storage> storage_;
  const std::vector<FieldDescription> fields_{{"image", FieldKind::kImage}};
  const std::vector<std::string> classes_;
  mutable std::shared_mutex mutex_;                            // guards the members below
  std::map<std::uint64_t, std::vector<GivenFile>> additions_;  // by the index of their first file
  std::vector<std::shared_ptr<const void>> owners_;
  std::uint64_t next_ = 0;
};

}  // namespace feedline::format
