// SPDX-License-Identifier: Apache-2.0
#include "format/tokens/token_files.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/cpus.h"
#include "format/tokens/token_kernels.h"
#include "memory/record.h"

namespace feedline::format {
namespace {

constexpr std::uint64_t kPrintedTokens = 512;  // from each end of a file, for the fingerprint
constexpr std::uint64_t kReadBytes = 1 << 20;  // size of each read of read_all(): fits into the second-level cache

std::unexpected<Error> in_file(Error error, const std::string& path) {
  error.where.shard = path;
  error.where.stage = "format";
  return std::unexpected(std::move(error));
}

}  // namespace

Result<TokenFiles> TokenFiles::open(const std::vector<TokenFile>& files, DType stored,
                                    const std::shared_ptr<const storage::Storage>& storage) {
  if (files.empty()) return config_error("tokens: at least one file is needed");
  TokenFiles opened;
  opened.stored_ = stored;
  const std::uint64_t token_bytes = opened.token_bytes();
  for (const TokenFile& file : files) {
    FEEDLINE_TRY(auto reader, storage->open(file.path, storage::Access::kRead));
    FEEDLINE_TRY(const storage::ObjectStat stat, reader->stat());
    const std::uint64_t bytes = stat.bytes - std::min(file.offset, stat.bytes);
    if (bytes % token_bytes != 0)
      return in_file(
          config_error("tokens: " + std::to_string(bytes) + " bytes are not a multiple of " +
                       std::to_string(token_bytes) + ", the size of a " + std::string(name_of(stored)) + " token")
              .error(),
          file.path);
    opened.files_.push_back({std::move(reader), file.offset, bytes / token_bytes, nullptr});
  }
  return opened;
}

std::uint64_t TokenFiles::tokens() const {
  std::uint64_t tokens = 0;
  for (const File& file : files_) tokens += file.tokens;
  return tokens;
}

std::uint64_t TokenFiles::most_held() {
  constexpr std::uint64_t kMost = 256 << 20, kShare = 64;
  return std::min(kMost, base::usable_memory_bytes() / kShare);
}

void TokenFiles::hold(std::uint64_t most_bytes) {
  std::uint64_t bytes = 0;
  for (const File& file : files_) bytes += file.offset + file.tokens * token_bytes();
  if (bytes > most_bytes) return;
  for (File& file : files_) file.held = HeldFile::make(file.offset + file.tokens * token_bytes());
}

std::string TokenFiles::summary() const {
  std::uint64_t bytes = 0;
  for (const File& file : files_) bytes += file.held ? file.held->bytes() : 0;
  return bytes == 0 ? "" : "tokens stay in memory after they are read, " + std::to_string(bytes >> 20) + " MiB in all";
}

void TokenFiles::prefetch(const File& file, std::uint64_t first, std::uint64_t count) const {
  if (file.held) file.held->prefetch(file.offset + first * token_bytes(), count * token_bytes());
}

Result<std::span<const std::byte>> TokenFiles::read(const File& file, std::uint64_t first, std::uint64_t count) const {
  thread_local memory::ByteBuffer room;
  const std::uint64_t bytes = count * token_bytes();
  if (file.held)
    if (const std::byte* const held = file.held->find(*file.reader, file.offset + first * token_bytes(), bytes))
      return std::span(held, bytes);
  const std::span<std::byte> tokens = room.resize(bytes);
  FEEDLINE_CHECK_OK(read_into(file, first, tokens));
  return tokens;
}

Result<void> TokenFiles::read_into(const File& file, std::uint64_t first, std::span<std::byte> tokens) const {
  FEEDLINE_TRY(const std::size_t got, file.reader->read_at(file.offset + first * token_bytes(), tokens));
  if (got == tokens.size()) return {};
  return in_file(data_error("the file has become shorter since it was opened", "format").error(), file.reader->name());
}

Result<void> TokenFiles::read_all(const See& see) const {
  const std::uint64_t at_a_time = kReadBytes / token_bytes();
  memory::ByteBuffer buffer;
  for (std::size_t file = 0; file < files_.size(); ++file) {
    for (std::uint64_t first = 0; first < files_[file].tokens; first += at_a_time) {
      const auto tokens = buffer.resize(std::min(at_a_time, files_[file].tokens - first) * token_bytes());
      FEEDLINE_CHECK_OK(read_into(files_[file], first, tokens));
      FEEDLINE_CHECK_OK(see(file, first, tokens));
    }
  }
  return {};
}

Result<void> TokenFiles::check(std::size_t file, std::uint64_t first, std::span<const std::byte> tokens,
                               std::uint64_t vocabulary) const {
  const std::uint64_t count = tokens.size() / token_bytes();
  const std::uint64_t at = first_outside(stored_, tokens.data(), count, vocabulary);
  if (at == count) return {};
  const std::int64_t token = first_token(stored_, tokens.data() + at * token_bytes());
  Error error = data_error("position " + std::to_string(first + at) + " has token " + std::to_string(token) +
                               ", but the vocabulary size is " + std::to_string(vocabulary),
                           "format")
                    .error();
  error.where.offset = where(file, first + at).offset;
  return in_file(std::move(error), files_[file].reader->name());
}

void TokenFiles::add_to(Fingerprint& fingerprint) const {
  for (const File& file : files_) fingerprint.add(file.tokens);
  memory::ByteBuffer buffer;
  for (const File& file : files_) {
    const std::uint64_t count = std::min<std::uint64_t>(file.tokens, kPrintedTokens);
    const auto ends = buffer.resize(count * token_bytes());
    for (const std::uint64_t first : {std::uint64_t{0}, file.tokens - count})
      if (read_into(file, first, ends)) fingerprint.add(ends);
  }
}

std::unexpected<Error> no_separator(const TokenFiles& files, std::int64_t separator) {
  return config_error("tokens: separator " + std::to_string(separator) + " is not among the " +
                      std::to_string(files.tokens()) + " tokens of the files");
}

Where TokenFiles::where(std::size_t file, std::uint64_t token) const {
  Where where;
  where.shard = files_[file].reader->name();
  where.offset = files_[file].offset + token * token_bytes();
  return where;
}

}  // namespace feedline::format
