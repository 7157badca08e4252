// SPDX-License-Identifier: Apache-2.0
#pragma once

// Tables about stored objects (frame.h) that persist between runs: in a hidden folder next to the object, in the user's
// cache folder, or in a folder that the user chose. A reader that finds none builds one. Several readers may do so at
// the same time: each table has a checksum and is published by a rename, and building one is faster than waiting for
// another reader.

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

// The table about "folder/NAME" is "folder/.feedline/NAME.feedline-index", which patterns of shards such as "*",
// "train-*" and "*.tar*" do not match. Earlier versions wrote "folder/NAME.feedline-index", which is still read.
inline constexpr std::string_view kIndexFolder = ".feedline", kIndexSuffix = ".feedline-index";

struct TableKind {
  FrameKind frame;
  std::string_view suffix;  // of its file
  bool beside = false;      // whether to store it next to the object, if that is a local file in a writable folder
};

// Thread-safe.
class PersistedTables {
 public:
  // directory: the user's choice, or empty.
  PersistedTables(TableKind kind, std::string directory, std::shared_ptr<Notes> notes)
      : kind_(kind), directory_(std::move(directory)), notes_(std::move(notes)) {}

  // A table's bytes, valid as long as `pin` or `buffer`.
  struct Bytes {
    std::span<const std::byte> file;
    memory::ByteBuffer buffer;
    std::shared_ptr<const void> pin;
    std::string place = {};  // its file
  };
  // Passes each stored table of the object to a callback until it accepts one. Tables of another version are skipped
  // and noted.
  using Take = std::function<bool(Bytes bytes)>;
  void read(const storage::Storage& storage, const std::string& object, std::uint64_t most_bytes,
            const Take& take) const;
  void map(const storage::Storage& storage, const std::string& object, const Take& take) const;
  // Fails only if the user chose the folder; otherwise the failure is noted, and the table is rebuilt the next time.
  Result<void> save(const storage::Storage& storage, const std::string& object, std::span<const std::byte> file) const;

  // Removes the object's stored tables, if possible.
  void forget(const storage::Storage& storage, const std::string& object) const;

 private:
  std::vector<std::string> places(const storage::Storage& storage, const std::string& object) const;
  // These files, and the path used by an earlier version.
  std::vector<std::string> known_places(const storage::Storage& storage, const std::string& object) const;
  bool is_ours(const std::string& place, std::span<const std::byte> file) const;

  const TableKind kind_;
  const std::string directory_;
  const std::shared_ptr<Notes> notes_;
};

}  // namespace feedline::cache
