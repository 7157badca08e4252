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
#include "format/held_file.h"
#include "storage/storage.h"

namespace feedline::format {

// Files of token numbers of one dtype, open. Immutable, so every method is thread-safe.
class TokenFiles {
 public:
  struct File {
    std::unique_ptr<storage::Reader> reader;
    std::uint64_t offset = 0;  // bytes before the first token
    std::uint64_t tokens = 0;
    std::unique_ptr<HeldFile> held;  // nullptr: it is read each time
  };

  // kConfig: no file, a size that is no multiple of the token's. kStorage: one cannot be opened.
  static Result<TokenFiles> open(const std::vector<TokenFile>& files, DType stored,
                                 const std::shared_ptr<const storage::Storage>& storage);

  std::span<const File> files() const { return files_; }
  DType stored() const { return stored_; }
  std::uint64_t token_bytes() const { return size_of(stored_); }
  std::uint64_t tokens() const;  // of all files

  // From now on what is read stays in memory, where all files fit into so many bytes.
  void hold(std::uint64_t most_bytes);
  std::string summary() const;  // of what is held, in a line; empty: nothing
  // To the processor's caches, if it is in memory; does nothing otherwise.
  void prefetch(const File& file, std::uint64_t first, std::uint64_t count) const;
  // Tokens where they are held, or in memory of the thread that its next call uses again. kData: the file has become
  // shorter.
  Result<std::span<const std::byte>> read(const File& file, std::uint64_t first, std::uint64_t count) const;
  // Reads every file from end to end and calls `see` with some tokens of file number `file`, from token `first` on,
  // until that gives an error.
  using See = std::function<Result<void>(std::size_t file, std::uint64_t first, std::span<const std::byte> tokens)>;
  Result<void> read_all(const See& see) const;
  // kData: the first of these tokens that is negative or not below `vocabulary`, with its place.
  Result<void> check(std::size_t file, std::uint64_t first, std::span<const std::byte> tokens,
                     std::uint64_t vocabulary) const;

  // Numbers of tokens, and the tokens at both ends of every file.
  void add_to(Fingerprint& fingerprint) const;
  // File and byte offset of a token, for messages.
  Where where(std::size_t file, std::uint64_t token) const;

 private:
  Result<void> read_into(const File& file, std::uint64_t first, std::span<std::byte> tokens) const;

  std::vector<File> files_;
  DType stored_ = DType::kUint16;
};

// The kConfig error for files that have documents, but none that ends.
std::unexpected<Error> no_separator(const TokenFiles& files, std::int64_t separator);

}  // namespace feedline::format
