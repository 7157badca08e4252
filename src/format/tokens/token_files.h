// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "feedline/dataset.h"
#include "format/checksum.h"
#include "format/index/held_file.h"
#include "storage/storage.h"

namespace feedline::format {

// Open files of tokens with the same dtype. Immutable and thread-safe.
class TokenFiles {
 public:
  struct File {
    std::unique_ptr<storage::Reader> reader;
    std::uint64_t offset = 0;  // bytes before the first token
    std::uint64_t tokens = 0;
    std::unique_ptr<HeldFile> held;  // the tokens in memory, or nullptr to read them each time
  };

  // Opens the files. Fails with kConfig if there are no files or a size is not a multiple of the token size, and with
  // kStorage if a file cannot be opened.
  static Result<TokenFiles> open(const std::vector<TokenFile>& files, DType stored,
                                 const std::shared_ptr<const storage::Storage>& storage);

  std::span<const File> files() const { return files_; }
  DType stored() const { return stored_; }
  std::uint64_t token_bytes() const { return size_of(stored_); }
  std::uint64_t tokens() const;  // of all files

  // The default limit of hold(), which is small enough even if eight ranks share a machine.
  static std::uint64_t most_held();
  // From now on, caches tokens in memory after they are read, if all files together have at most `most_bytes` bytes.
  void hold(std::uint64_t most_bytes);
  std::string summary() const;  // describes the retained tokens in one line; empty if there are none
  // Prefetches tokens into the CPU caches if they are in memory. Otherwise does nothing.
  void prefetch(const File& file, std::uint64_t first, std::uint64_t count) const;
  // Returns tokens in cached memory, or in a buffer that the next call on this thread overwrites. Fails with kData if
  // the file has become shorter.
  Result<std::span<const std::byte>> read(const File& file, std::uint64_t first, std::uint64_t count) const;
  // Reads every file from start to end. Calls `see` with consecutive tokens of file number `file`, starting at token
  // `first`, until `see` returns an error.
  using See = std::function<Result<void>(std::size_t file, std::uint64_t first, std::span<const std::byte> tokens)>;
  Result<void> read_all(const See& see) const;
  // Fails with kData and the position if a token is negative or not below `vocabulary`.
  Result<void> check(std::size_t file, std::uint64_t first, std::span<const std::byte> tokens,
                     std::uint64_t vocabulary) const;

  // Adds the number of tokens, and the tokens at both ends of every file, to the hash.
  void add_to(Fingerprint& fingerprint) const;
  // Returns the file and byte offset of a token, for messages.
  Where where(std::size_t file, std::uint64_t token) const;

 private:
  Result<void> read_into(const File& file, std::uint64_t first, std::span<std::byte> tokens) const;

  std::vector<File> files_;
  DType stored_ = DType::kUint16;
};

// Returns the kConfig error for files in which the separator never occurs.
std::unexpected<Error> no_separator(const TokenFiles& files, std::int64_t separator);

}  // namespace feedline::format
