// SPDX-License-Identifier: Apache-2.0
#pragma once

// Tables about stored objects (frame.h) that persist between runs. These tables are stored in a hidden folder next to
// the object, in the user's cache folder, or in a folder that the user chose. A reader that finds no table builds one.
// Several readers may build a table at the same time: each table has a checksum and is published by a rename, and
// building one is faster than waiting for another reader.

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cache/frame.h"
#include "cache/notes.h"
#include "feedline/error.h"
#include "memory/record.h"
#include "storage/storage.h"

namespace feedline::cache {

// The table about "folder/NAME" is stored as "folder/.feedline/NAME.feedline-index"; shard patterns such as "*",
// "train-*" and "*.tar*" do not match this path. Earlier versions wrote "folder/NAME.feedline-index"; that file is
// still read.
inline constexpr std::string_view kIndexFolder = ".feedline", kIndexSuffix = ".feedline-index";

struct TableKind {
  FrameKind frame;
  std::string_view suffix;      // of its file
  bool next_to_object = false;  // whether to store it next to the object, if that is a local file in a writable folder
};

// Thread-safe.
class PersistedTables {
 public:
  // directory: the folder that the user chose, or empty.
  PersistedTables(TableKind kind, std::string directory, std::shared_ptr<Notes> notes)
      : kind_(kind), directory_(std::move(directory)), notes_(std::move(notes)) {}

  // A table's bytes, valid as long as `pin` or `buffer`.
  struct Bytes {
    std::span<const std::byte> file;
    memory::ByteBuffer buffer;
    std::shared_ptr<const void> pin;
    std::string location = {};  // its file
  };
  // Passes each stored table of the object to a callback until it accepts one. Skips tables of another version, and
  // adds a note.
  using Take = std::function<bool(Bytes bytes)>;
  void read(const storage::Storage& storage, const std::string& object, std::uint64_t most_bytes,
            const Take& take) const;
  void map(const storage::Storage& storage, const std::string& object, const Take& take) const;
  // Fails only if the user chose the folder; otherwise a failure is noted, and the table is rebuilt the next time.
  Result<void> save(const storage::Storage& storage, const std::string& object, std::span<const std::byte> file) const;

  // The paths of the object's table, in the order in which they are tried.
  std::vector<std::string> locations(const storage::Storage& storage, const std::string& object) const;
  // Removes the object's stored tables, if possible.
  void forget(const storage::Storage& storage, const std::string& object) const;

 private:
  // Returns the paths in locations(), including the path used by an earlier version.
  std::vector<std::string> known_locations(const storage::Storage& storage, const std::string& object) const;
  bool is_ours(const std::string& location, std::span<const std::byte> file) const;

  const TableKind kind_;
  const std::string directory_;
  const std::shared_ptr<Notes> notes_;
};

// Returns the paths of a table about the objects of a source, in the order in which they are tried. Only the table of a
// local file is stored next to it, because other programs read all files in a folder. directory: as above. Sends no
// request to a remote storage.
std::vector<std::string> locations_of_source(FrameKind frame, std::string_view suffix, const storage::Storage& storage,
                                             const std::string& source, const std::string& directory);

}  // namespace feedline::cache
