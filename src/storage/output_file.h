// SPDX-License-Identifier: Apache-2.0
#pragma once

// A local file that appears whole or not at all: written under another name, then renamed.

#include <cstddef>
#include <span>
#include <string>

#include "feedline/error.h"
#include "storage/file_descriptor.h"

namespace feedline::storage {

// Does a commit() wait for the device? Without it a power cut may leave the name on a file that is cut or all zeros:
// right for files that carry their own checksum and can be made again.
enum class Flush : bool { kNo, kYes };

// Not for several threads at once. Without a commit() the destructor removes what was written.
class OutputFile {
 public:
  // Writes beside `path` under a name that no other process or thread uses.
  static Result<OutputFile> create(const std::string& path);
  OutputFile(OutputFile&& other) noexcept;
  ~OutputFile();

  Result<void> append(std::span<const std::byte> bytes);
  // The file replaces what stood at `path`. Nothing may follow.
  Result<void> commit(Flush flush);

 private:
  OutputFile(FileDescriptor fd, std::string path, std::string unfinished);

  FileDescriptor fd_;
  std::string path_;
  std::string unfinished_;  // empty once renamed
};

// create, append, commit.
Result<void> write_file(const std::string& path, std::span<const std::byte> bytes, Flush flush);

}  // namespace feedline::storage
