// SPDX-License-Identifier: Apache-2.0
#include "format/tokens/document_format.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace feedline::format {
namespace {

std::vector<FieldDescription> fields_of(const TokenOptions& options) {
  const ArraySpec row{options.output, {kAnyLength}};
  return {
      {"x", FieldKind::kArray, row}, {"y", FieldKind::kArray, row}, {"length", FieldKind::kArray, {DType::kInt64, {}}}};
}

Element element_as(DType output, std::int64_t token) {
  return output == DType::kInt32 ? element_of(static_cast<std::int32_t>(token)) : element_of(token);
}

// Finds the documents in one pass over the files and, if options.vocabulary is set, checks that all tokens are below
// it.
Result<DocumentIndex> index_of(const TokenFiles& files, const TokenOptions& options) {
  DocumentIndex index(options.window, options.stride, options.shortest);
  std::vector<std::uint64_t> separators;
  bool any = false;
  std::uint64_t file_first = 0, document_first = 0;
  const auto see = [&](std::size_t file, std::uint64_t first, std::span<const std::byte> tokens) -> Result<void> {
    if (options.vocabulary > 0) FEEDLINE_CHECK_OK(files.check(file, first, tokens, options.vocabulary));
    separators.clear();
    find_token(options.stored, tokens, *options.separator, file_first + first, separators);
    any = any || !separators.empty();
    for (const std::uint64_t separator : separators) {
      index.add(document_first, separator + 1);
      document_first = separator + 1;
    }
    const std::uint64_t seen = first + tokens.size() / files.token_bytes();
    if (seen < files.files()[file].tokens) return {};
    file_first += seen;
    if (document_first < file_first) index.add(document_first, file_first);
    document_first = file_first;
    return {};
  };
  FEEDLINE_CHECK_OK(files.read_all(see));
  if (!any) return no_separator(files, *options.separator);
  if (index.size() == 0)
    return config_error("tokens: no document has " + std::to_string(options.shortest) +
                        " tokens or more, including its separator");
  index.shrink();
  return index;
}

}  // namespace

void DocumentIndex::add(std::uint64_t first, std::uint64_t last) {
  const std::uint64_t tokens = last - first;
  if (tokens < shortest_) {
    ++left_out_;
    return;
  }
  ++documents_;
  for (std::uint64_t begin = first;; begin += stride_) {
    const std::uint64_t piece = std::min(last - begin, window_ + 1);
    first_.push_back(begin);
    tokens_.push_back(static_cast<std::uint32_t>(piece));
    longest_ = std::max(longest_, piece);
    // If the stride exceeds the window, the remaining tokens may be in a gap between two pieces, or may be a single
    // token, which has no target.
    if (begin + piece == last || begin + stride_ + 2 > last) return;
  }
}

void DocumentIndex::shrink() {
  first_.shrink_to_fit();
  tokens_.shrink_to_fit();
}

std::uint64_t DocumentIndex::before(std::uint64_t token) const {
  return static_cast<std::uint64_t>(std::ranges::lower_bound(first_, token) - first_.begin());
}

Result<std::shared_ptr<const RowFormat>> DocumentFormat::make(TokenFiles files, const TokenOptions& options) {
  FEEDLINE_TRY(const Widen widen, widen_of(options.stored, options.output));
  FEEDLINE_TRY(auto index, index_of(files, options));
  return std::shared_ptr<const RowFormat>(new DocumentFormat(std::move(files), std::move(index), options, widen));
}

DocumentFormat::DocumentFormat(TokenFiles files, DocumentIndex index, const TokenOptions& options, Widen widen)
    : FilledFormat(fields_of(options), 2 * size_of(options.output) * (files.tokens() / index.size() + 1)),
      files_(std::move(files)),
      index_(std::move(index)),
      options_(options),
      widen_(widen),
      pad_(element_as(options.output, options.pad)),
      ignored_(element_as(options.output, kIgnoredTarget)) {
  Fingerprint fingerprint;
  fingerprint.add(std::string_view("documents"));
  fingerprint.add(name_of(options.stored));
  fingerprint.add(options.window);
  fingerprint.add(options.stride);
  fingerprint.add(options.shortest);
  fingerprint.add(static_cast<std::uint64_t>(*options.separator));
  files_.add_to(fingerprint);
  fingerprint.add(index_.size());
  fingerprint_ = fingerprint.value();
  std::uint64_t end = 0;
  for (const TokenFiles::File& file : files_.files()) ends_.push_back(end += file.tokens);
}

std::pair<std::size_t, std::uint64_t> DocumentFormat::find_sample(std::uint64_t sample) const {
  const std::uint64_t token = index_.first(sample);
  const auto file = static_cast<std::size_t>(std::ranges::upper_bound(ends_, token) - ends_.begin());
  FEEDLINE_CHECK(file < ends_.size());
  return {file, token - (file > 0 ? ends_[file - 1] : 0)};
}

Result<std::uint64_t> DocumentFormat::fill(std::span<const std::uint64_t> samples,
                                           std::span<const ArrayView> first_rows) const {
  const std::uint64_t out_bytes = size_of(options_.output);
  const auto padded = static_cast<std::uint64_t>(first_rows[0].spec.shape[0]);
  auto [x, y] = std::pair(first_rows[0].data, first_rows[1].data);
  std::int64_t* length = first_rows[2].as<std::int64_t>();
  std::uint64_t read = 0;
  for (const std::uint64_t sample : samples) {
    const std::uint64_t count = index_.tokens(sample) - 1;
    FEEDLINE_CHECK(count <= padded);
    const auto [file, first] = find_sample(sample);
    FEEDLINE_TRY(const auto tokens, files_.read(files_.files()[file], first, count + 1));
    widen_(tokens.data(), count, x, y);
    fill_elements(x + count * out_bytes, padded - count, pad_, out_bytes);
    fill_elements(y + count * out_bytes, padded - count, ignored_, out_bytes);
    *length++ = static_cast<std::int64_t>(count);
    x += padded * out_bytes;
    y += padded * out_bytes;
    read += tokens.size();
  }
  return read;
}

std::vector<std::uint64_t> DocumentFormat::shard_ends() const {
  std::vector<std::uint64_t> ends;
  for (const std::uint64_t end : ends_) ends.push_back(index_.before(end));
  return ends;
}

std::string DocumentFormat::summary() const {
  const std::string held = files_.summary();
  return std::to_string(index_.documents()) + " documents in " + std::to_string(index_.size()) + " samples; omitted " +
         std::to_string(index_.left_out()) + " with fewer than " + std::to_string(options_.shortest) + " tokens" +
         (held.empty() ? "" : "; " + held);
}

Where DocumentFormat::where(std::uint64_t index) const {
  const auto [file, token] = find_sample(index);
  Where where = files_.where(file, token);
  where.key = "token " + std::to_string(token);
  where.record = index;
  return where;
}

}  // namespace feedline::format
