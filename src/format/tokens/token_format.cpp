// SPDX-License-Identifier: Apache-2.0
#include "format/tokens/token_format.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/check.h"
#include "format/tokens/document_format.h"
#include "format/tokens/separated_documents.h"

namespace feedline::format {
namespace {

ArraySpec window_spec(DType dtype, const TokenOptions& options) {
  return {dtype, {static_cast<std::int64_t>(options.window)}};
}

std::vector<FieldDescription> fields_of(const TokenOptions& options) {
  const ArraySpec row = window_spec(options.output, options);
  std::vector<FieldDescription> fields{{"x", FieldKind::kArray, row}, {"y", FieldKind::kArray, row}};
  if (options.separator) fields.push_back({"document", FieldKind::kArray, window_spec(DType::kInt32, options)});
  return fields;
}

std::uint64_t sample_bytes_of(const TokenOptions& options) {
  return options.window * (2 * size_of(options.output) + (options.separator ? sizeof(std::int32_t) : 0));
}

Result<void> check_documents(const TokenOptions& options) {
  if (!options.separator) {
    if (options.documents == Documents::kPack) return {};
    return config_error("tokens: documents need a separator, the token that ends each of them");
  }
  const std::string separator = "tokens: separator " + std::to_string(*options.separator);
  if (!holds_token(options.stored, *options.separator))
    return config_error(separator + " cannot be among tokens of dtype " + std::string(name_of(options.stored)));
  if (options.output == DType::kInt32 && !std::in_range<std::int32_t>(*options.separator))
    return config_error(separator + " cannot be delivered as int32");
  if (options.vocabulary > 0 && static_cast<std::uint64_t>(*options.separator) >= options.vocabulary)
    return config_error(separator + " is outside the vocabulary of " + std::to_string(options.vocabulary));
  if (options.documents != Documents::kApart) return {};
  if (options.shortest < 2)
    return config_error("tokens: a document needs at least 2 tokens, one to predict from and one to predict");
  if (!std::in_range<std::uint32_t>(options.window) || !std::in_range<std::uint32_t>(options.stride))
    return config_error("tokens: window and stride must be below 2^32 if documents are separate");
  if (options.output == DType::kInt32 && !std::in_range<std::int32_t>(options.pad))
    return config_error("tokens: pad " + std::to_string(options.pad) + " cannot be delivered as int32");
  return {};
}

// Reads all tokens, and checks that they are below the vocabulary size and that the separator occurs.
Result<void> check_tokens(const TokenFiles& files, const TokenOptions& options) {
  std::vector<std::uint64_t> separators;
  const auto see = [&](std::size_t file, std::uint64_t first, std::span<const std::byte> tokens) {
    if (options.separator && separators.empty())
      find_token(options.stored, tokens, *options.separator, first, separators);
    return files.check(file, first, tokens, options.vocabulary);
  };
  FEEDLINE_CHECK_OK(files.read_all(see));
  return options.separator && separators.empty() ? no_separator(files, *options.separator) : Result<void>();
}

}  // namespace

Result<std::shared_ptr<const RowFormat>> open_tokens(const std::vector<TokenFile>& files, const TokenOptions& given,
                                                     const std::shared_ptr<const storage::Storage>& storage) {
  TokenOptions options = given;
  if (options.documents == Documents::kWhole) {
    if (options.window != 0 || options.stride != 0 || options.output != DType::kInt64)
      return config_error("tokens: whole documents have no window or stride, and their dtype is int64");
    FEEDLINE_CHECK_OK(to_int64_of(options.stored));
    const bool has_ends = std::ranges::all_of(files, [](const TokenFile& file) { return file.ends.has_value(); });
    if (!has_ends || options.separator) FEEDLINE_CHECK_OK(check_documents(options));
    return open_whole_documents(files, options, storage);
  }
  if (options.window == 0) return config_error("tokens: window must be at least 1");
  if (options.stride == 0) options.stride = options.window;
  FEEDLINE_CHECK_OK(widen_of(options.stored, options.output));
  FEEDLINE_CHECK_OK(check_documents(options));
  FEEDLINE_TRY(auto opened, TokenFiles::open(files, options.stored, storage));
  opened.hold(options.memory_bytes.value_or(TokenFiles::most_held()));
  if (options.documents == Documents::kApart) return DocumentFormat::make(std::move(opened), options);
  return TokenFormat::make(std::move(opened), options);
}

Result<std::shared_ptr<const RowFormat>> TokenFormat::make(TokenFiles files, const TokenOptions& options) {
  FEEDLINE_TRY(const Widen widen, widen_of(options.stored, options.output));
  std::vector<std::uint64_t> ends;
  std::uint64_t samples = 0;
  for (const TokenFiles::File& file : files.files()) {
    if (file.tokens > options.window) samples += (file.tokens - 1 - options.window) / options.stride + 1;
    ends.push_back(samples);
  }
  if (samples == 0)
    return config_error("tokens: no file has the " + std::to_string(options.window + 1) +
                        " tokens that a window and its targets need; all files together have " +
                        std::to_string(files.tokens()));
  if (options.vocabulary > 0) FEEDLINE_CHECK_OK(check_tokens(files, options));
  return std::shared_ptr<const RowFormat>(new TokenFormat(std::move(files), std::move(ends), options, widen));
}

TokenFormat::TokenFormat(TokenFiles files, std::vector<std::uint64_t> ends, const TokenOptions& options, Widen widen)
    : FilledFormat(fields_of(options), sample_bytes_of(options)),
      files_(std::move(files)),
      ends_(std::move(ends)),
      options_(options),
      widen_(widen) {
  Fingerprint fingerprint;
  fingerprint.add(name());
  fingerprint.add(name_of(options.stored));
  fingerprint.add(options.window);
  fingerprint.add(options.stride);
  files_.add_to(fingerprint);
  if (options.separator) fingerprint.add(static_cast<std::uint64_t>(*options.separator));
  fingerprint_ = fingerprint.value();
}

std::pair<std::size_t, std::uint64_t> TokenFormat::find_sample(std::uint64_t sample) const {
  const auto file = static_cast<std::size_t>(std::ranges::upper_bound(ends_, sample) - ends_.begin());
  FEEDLINE_CHECK(file < ends_.size());
  return {file, sample - (file > 0 ? ends_[file - 1] : 0)};
}

Result<std::uint64_t> TokenFormat::fill(std::span<const std::uint64_t> samples,
                                        std::span<const ArrayView> first_rows) const {
  ArrayView x = first_rows[0], y = first_rows[1];
  const std::uint64_t tokens_of_one = options_.window + 1;
  auto next = samples.empty() ? std::pair<std::size_t, std::uint64_t>() : find_sample(samples[0]);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const auto [file, window] = next;
    FEEDLINE_TRY(const auto tokens, files_.read(files_.files()[file], window * options_.stride, tokens_of_one));
    if (i + 1 < samples.size()) {  // prefetches the next sample while this one is converted
      next = find_sample(samples[i + 1]);
      files_.prefetch(files_.files()[next.first], next.second * options_.stride, tokens_of_one);
    }
    widen_(tokens.data(), options_.window, x.data, y.data);
    if (options_.separator)
      number_documents(options_.output, *options_.separator, kIgnoredTarget, x, y,
                       first_rows[2].as<std::int32_t>() + i * options_.window);
    x.data += x.spec.bytes();
    y.data += y.spec.bytes();
  }
  return samples.size() * tokens_of_one * files_.token_bytes();
}

Where TokenFormat::where(std::uint64_t index) const {
  const auto [file, window] = find_sample(index);
  Where where = files_.where(file, window * options_.stride);
  where.key = "window " + std::to_string(window);
  where.record = index;
  return where;
}

}  // namespace feedline::format
