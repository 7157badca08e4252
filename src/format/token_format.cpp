// SPDX-License-Identifier: Apache-2.0
#include "format/token_format.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "format/checksum.h"

namespace feedline::format {
namespace {

constexpr std::uint64_t kPrintedTokens = 512;  // from both ends of a file into the fingerprint

// Both outputs in one pass over the input, which stays in the first-level cache between the two loops.
template <typename In, typename Out>
void widen(const std::byte* tokens, std::uint64_t window, std::byte* x, std::byte* y) {
  const auto convert = [window](const std::byte* from, std::byte* to) {
    for (std::uint64_t i = 0; i < window; ++i) {
      In token;
      std::memcpy(&token, from + i * sizeof(In), sizeof(In));  // a header may leave it on any address
      const Out out = static_cast<Out>(token);
      std::memcpy(to + i * sizeof(Out), &out, sizeof(Out));
    }
  };
  convert(tokens, x);
  convert(tokens + sizeof(In), y);
}

using Widen = void (*)(const std::byte*, std::uint64_t, std::byte*, std::byte*);

template <typename Out>
Widen widen_from(DType stored) {
  switch (stored) {
    case DType::kUint8:
      return widen<std::uint8_t, Out>;
    case DType::kUint16:
      return widen<std::uint16_t, Out>;
    case DType::kInt16:
      return widen<std::int16_t, Out>;
    case DType::kUint32:
      return widen<std::uint32_t, Out>;
    case DType::kInt32:
      return widen<std::int32_t, Out>;
    case DType::kInt64:
      return widen<std::int64_t, Out>;
    default:
      return nullptr;
  }
}

Result<Widen> widen_of(const TokenOptions& options) {
  const Widen found = options.output == DType::kInt64   ? widen_from<std::int64_t>(options.stored)
                      : options.output == DType::kInt32 ? widen_from<std::int32_t>(options.stored)
                                                        : nullptr;
  if (found != nullptr) return found;
  return config_error("tokens: " + std::string(name_of(options.stored)) + " tokens as " +
                      std::string(name_of(options.output)) +
                      ": stored are uint8, int16, uint16, int32, uint32 or int64, and delivered int32 or int64");
}

template <typename T>
std::int64_t token_at(const std::byte* data, std::uint64_t i) {
  T token;
  std::memcpy(&token, data + i * sizeof(T), sizeof(T));
  return static_cast<std::int64_t>(token);
}

// The place of the first token that is negative or not below `vocabulary`; `tokens`: none.
template <typename T>
std::uint64_t first_outside(const std::byte* data, std::uint64_t tokens, std::uint64_t vocabulary) {
  const auto outside = [&](std::uint64_t i) {
    return static_cast<std::uint64_t>(token_at<T>(data, i)) >= vocabulary;  // negative ones are huge here
  };
  for (std::uint64_t i = 0; i < tokens; ++i)
    if (outside(i)) return i;
  return tokens;
}

std::uint64_t first_outside(DType stored, const std::byte* data, std::uint64_t tokens, std::uint64_t vocabulary) {
  switch (stored) {
    case DType::kUint8:
      return first_outside<std::uint8_t>(data, tokens, vocabulary);
    case DType::kUint16:
      return first_outside<std::uint16_t>(data, tokens, vocabulary);
    case DType::kInt16:
      return first_outside<std::int16_t>(data, tokens, vocabulary);
    case DType::kUint32:
      return first_outside<std::uint32_t>(data, tokens, vocabulary);
    case DType::kInt32:
      return first_outside<std::int32_t>(data, tokens, vocabulary);
    default:
      return first_outside<std::int64_t>(data, tokens, vocabulary);
  }
}

std::vector<FieldDescription> fields_of(const TokenOptions& options) {
  const ArraySpec row{options.output, {static_cast<std::int64_t>(options.window)}};
  return {{"x", FieldKind::kArray, row}, {"y", FieldKind::kArray, row}};
}

std::unexpected<Error> in_file(Error error, const std::string& path) {
  error.where.shard = path;
  error.where.stage = "format";
  return std::unexpected(std::move(error));
}

}  // namespace

Result<std::shared_ptr<const Format>> TokenFormat::open(const std::vector<TokenFile>& files,
                                                        const TokenOptions& options_in,
                                                        const std::shared_ptr<const storage::Storage>& storage) {
  TokenOptions options = options_in;
  if (options.window == 0) return config_error("tokens: window must be at least 1");
  if (options.stride == 0) options.stride = options.window;
  if (files.empty()) return config_error("tokens: at least one file is needed");
  FEEDLINE_TRY(const Widen widen, widen_of(options));
  const std::uint64_t token_bytes = size_of(options.stored);
  std::vector<File> opened;
  std::uint64_t samples = 0, tokens = 0;
  for (const TokenFile& file : files) {
    FEEDLINE_TRY(auto reader, storage->open(file.path, storage::Access::kRead));
    FEEDLINE_TRY(const storage::ObjectStat stat, reader->stat());
    const std::uint64_t bytes = stat.bytes - std::min(file.offset, stat.bytes);
    if (bytes % token_bytes != 0)
      return in_file(
          config_error("tokens: " + std::to_string(bytes) + " bytes are no multiple of " + std::to_string(token_bytes) +
                       ", the size of a " + std::string(name_of(options.stored)) + " token")
              .error(),
          file.path);
    const std::uint64_t count = bytes / token_bytes;
    if (count > options.window) samples += (count - 1 - options.window) / options.stride + 1;
    tokens += count;
    opened.push_back({std::move(reader), file.offset, count, samples});
  }
  if (samples == 0)
    return config_error("tokens: no file has the " + std::to_string(options.window + 1) +
                        " tokens that a window and its targets take; all together have " + std::to_string(tokens));
  std::shared_ptr<const TokenFormat> format(new TokenFormat(std::move(opened), options, widen));
  if (options.vocabulary > 0) FEEDLINE_CHECK_OK(format->check_vocabulary(options.vocabulary));
  return std::shared_ptr<const Format>(std::move(format));
}

TokenFormat::TokenFormat(std::vector<File> files, const TokenOptions& options, Widen widen)
    : FilledFormat(fields_of(options)),
      files_(std::move(files)),
      options_(options),
      widen_(widen),
      token_bytes_(size_of(options.stored)),
      window_bytes_(options.window * size_of(options.output)) {
  Fingerprint fingerprint;
  fingerprint.add(name());
  fingerprint.add(name_of(options.stored));
  fingerprint.add(options.window);
  fingerprint.add(options.stride);
  for (const File& file : files_) fingerprint.add(file.tokens);
  // What the tokens are: the first and the last of each file.
  std::vector<std::byte> ends;
  for (const File& file : files_) {
    const std::uint64_t count = std::min<std::uint64_t>(file.tokens, kPrintedTokens);
    for (const std::uint64_t first : {std::uint64_t{0}, file.tokens - count})
      if (read_tokens(file, first, count, ends)) fingerprint.add(ends);
  }
  fingerprint_ = fingerprint.value();
}

Result<void> TokenFormat::read_tokens(const File& file, std::uint64_t first, std::uint64_t count,
                                      std::vector<std::byte>& tokens) const {
  tokens.resize(count * token_bytes_);
  FEEDLINE_TRY(const std::size_t got, file.reader->read_at(file.offset + first * token_bytes_, tokens));
  if (got == tokens.size()) return {};
  return in_file(data_error("the file has become shorter since it was opened", "format").error(), file.reader->name());
}

Result<void> TokenFormat::check_vocabulary(std::uint64_t vocabulary) const {
  constexpr std::uint64_t kPiece = std::uint64_t{1} << 20;  // tokens at a time
  std::vector<std::byte> tokens;
  for (const File& file : files_) {
    for (std::uint64_t first = 0; first < file.tokens; first += kPiece) {
      const std::uint64_t count = std::min(kPiece, file.tokens - first);
      FEEDLINE_CHECK_OK(read_tokens(file, first, count, tokens));
      const std::uint64_t at = first_outside(options_.stored, tokens.data(), count, vocabulary);
      if (at == count) continue;
      Error error = data_error("token " + std::to_string(first + at) + " is outside the vocabulary of " +
                                   std::to_string(vocabulary),
                               "format")
                        .error();
      error.where.offset = file.offset + (first + at) * token_bytes_;
      return in_file(std::move(error), file.reader->name());
    }
  }
  return {};
}

const TokenFormat::File& TokenFormat::file_of(std::uint64_t& sample) const {
  const auto file = std::ranges::upper_bound(files_, sample, {}, &File::end);
  FEEDLINE_CHECK(file != files_.end());
  if (file != files_.begin()) sample -= std::prev(file)->end;
  return *file;
}

Result<std::uint64_t> TokenFormat::fill(std::span<const std::uint64_t> samples,
                                        std::span<std::byte* const> fields) const {
  std::vector<std::byte> tokens;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    std::uint64_t sample = samples[i];
    const File& file = file_of(sample);
    FEEDLINE_CHECK_OK(read_tokens(file, sample * options_.stride, options_.window + 1, tokens));
    widen_(tokens.data(), options_.window, fields[0] + i * window_bytes_, fields[1] + i * window_bytes_);
  }
  return samples.size() * (options_.window + 1) * token_bytes_;
}

std::vector<std::uint64_t> TokenFormat::shard_ends() const {
  std::vector<std::uint64_t> ends;
  for (const File& file : files_) ends.push_back(file.end);
  return ends;
}

Where TokenFormat::where(std::uint64_t index) const {
  std::uint64_t sample = index;
  const File& file = file_of(sample);
  Where where;
  where.shard = file.reader->name();
  where.key = "window " + std::to_string(sample);
  where.record = index;
  where.offset = file.offset + sample * options_.stride * token_bytes_;
  return where;
}

}  // namespace feedline::format
