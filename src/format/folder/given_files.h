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

// An image file that somebody else names, or has in memory.
struct GivenFile {
  std::string path;                       // what messages call it; of one that is not in memory, where it lies
  std::span<const std::byte> bytes = {};  // its content; none: it is read from `path`
};

// Image files that come while they are read, for datasets that are listed elsewhere. The one format that
// changes: samples are added and forgotten, and an index means the same file for as long as it is known.
class GivenFiles final : public RecordFormat {
 public:
  explicit GivenFiles(std::shared_ptr<const storage::Storage> storage);

  // Index of the first of `files`; the others follow. Indexes are never given twice.
  std::uint64_t add(std::vector<GivenFile> files);
  // Lives as long as this: what the bytes of files in memory lie in.
  void keep(std::shared_ptr<const void> owner);
  // Drops what the add() that returned `first` brought. A thread that reads one of them goes on; later reads fail.
  void forget(std::uint64_t first);
  void forget_all();

  std::string_view name() const override { return "files"; }
  std::uint64_t size() const override { return kSize; }  // not how many there are: how many there may ever be
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
  // Room for the path, and the bytes of a file in memory; nullopt: not known.
  std::optional<std::span<const std::byte>> find(std::uint64_t index, std::string& path) const;

  const std::shared_ptr<const storage::Storage> storage_;
  const std::vector<FieldDescription> fields_{{"image", FieldKind::kImage}};
  const std::vector<std::string> classes_;
  mutable std::shared_mutex mutex_;                            // guards what follows
  std::map<std::uint64_t, std::vector<GivenFile>> additions_;  // by the index of their first file
  std::vector<std::shared_ptr<const void>> owners_;
  std::uint64_t next_ = 0;
};

}  // namespace feedline::format
