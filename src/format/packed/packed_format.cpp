// SPDX-License-Identifier: Apache-2.0
#include "format/packed/packed_format.h"

#include <algorithm>
#include <limits>
#include <mutex>
#include <numeric>
#include <string>
#include <utility>

#include "base/check.h"

namespace feedline::format {
namespace {

constexpr std::uint64_t kNone = ~std::uint64_t{0};
enum Field : std::size_t { kInputIds, kLabels, kPositionIds, kDocumentIds, kEnds };

std::vector<FieldDescription> fields_of(const PackOptions& options) {
  const ArraySpec row{DType::kInt64, {static_cast<std::int64_t>(options.length)}};
  return {{"input_ids", FieldKind::kArray, row},
          {"labels", FieldKind::kArray, row},
          {"position_ids", FieldKind::kArray, row},
          {"document_ids", FieldKind::kArray, row},
          {"cu_seqlens", FieldKind::kArray, {DType::kInt32, {kAnyLength}}}};
}

// Returns the first value that is not accepted, or nullopt.
std::optional<std::size_t> first_outside(std::span<const std::int64_t> values, auto is_outside) {
  bool any = false;  // without a branch, so that the loop is vectorized
  for (const std::int64_t value : values) any |= is_outside(value);
  if (!any) return {};
  return static_cast<std::size_t>(std::ranges::find_if(values, is_outside) - values.begin());
}

}  // namespace

PackedFormat::PackedFormat(TokenFields fields, const PackOptions& options)
    : FilledFormat(fields_of(options), 4 * sizeof(std::int64_t) * options.length),
      token_fields_(std::move(fields)),
      options_(options) {}

std::uint64_t PackedFormat::add(std::vector<std::vector<PackPiece>> rows) {
  FEEDLINE_CHECK(!rows.empty());
  auto batch = std::make_shared<PackedBatch>();
  std::uint64_t at = 0;
  batch->ends.push_back(0);
  const auto end_segment = [&](std::uint64_t tokens) {
    at += tokens;
    batch->ends.push_back(static_cast<std::int32_t>(at));
    batch->segments.longest = std::max(batch->segments.longest, tokens);
  };
  for (const auto& row : rows) {
    std::uint64_t used = 0;
    for (const PackPiece& piece : row) {
      end_segment(padded(piece.length));
      batch->segments.documents.push_back(piece.document);
      used += padded(piece.length);
    }
    FEEDLINE_CHECK(used <= options_.length);
    if (used < options_.length) end_segment(options_.length - used);
  }
  batch->segments.count = batch->ends.size() - 1;
  const std::size_t part = (batch->ends.size() + rows.size() - 1) / rows.size();
  batch->ends.resize(part * rows.size(), batch->ends.back());
  batch->rows = std::move(rows);
  const std::lock_guard lock(mutex_);
  const std::uint64_t first = next_;
  next_ += batch->rows.size();
  FEEDLINE_CHECK(next_ < kSize);
  batches_.emplace(first, std::move(batch));
  return first;
}

void PackedFormat::forget_before(std::uint64_t first) {
  const std::lock_guard lock(mutex_);
  batches_.erase(batches_.begin(), batches_.lower_bound(first));
}

std::uint64_t PackedFormat::padded(std::uint64_t length) const {
  const std::uint64_t multiple = options_.document_multiple;
  return (length + multiple - 1) / multiple * multiple;
}

PackedFormat::FoundRow PackedFormat::find(std::uint64_t sample) const {
  const std::shared_lock lock(mutex_);
  auto batch = batches_.upper_bound(sample);
  if (batch == batches_.begin()) return {};
  --batch;
  const std::uint64_t row = sample - batch->first;
  if (row >= batch->second->rows.size()) return {};
  return {batch->second, static_cast<std::size_t>(row)};
}

std::optional<PackSegments> PackedFormat::segments_of(std::uint64_t sample) const {
  const FoundRow found = find(sample);
  return found.batch ? std::optional(found.batch->segments) : std::nullopt;
}

std::uint64_t PackedFormat::length(std::uint64_t index, std::size_t field) const {
  if (field != kEnds) return options_.length;
  const FoundRow found = find(index);
  return found.batch ? found.batch->ends.size() / found.batch->rows.size() : 1;
}

// A row has at most one piece per token.
std::uint64_t PackedFormat::longest(std::size_t field) const { return options_.length + (field == kEnds ? 1 : 0); }

Result<std::uint64_t> PackedFormat::fill(std::span<const std::uint64_t> samples,
                                         std::span<const ArrayView> first_rows) const {
  std::vector<ArrayView> row(first_rows.begin(), first_rows.end());
  std::uint64_t read = 0;
  for (const std::uint64_t sample : samples) {
    const FoundRow found = find(sample);
    if (!found.batch) return data_error("pack " + std::to_string(sample) + " was removed", "format");
    FEEDLINE_TRY(const std::uint64_t bytes, fill_row(*found.batch, found.row, row));
    read += bytes;
    for (ArrayView& view : row) view.data += view.spec.bytes();
  }
  return read;
}

Result<std::uint64_t> PackedFormat::fill_row(PackedBatch& batch, std::size_t row,
                                             std::span<const ArrayView> out) const {
  const std::size_t length = options_.length;
  const std::span tokens(out[kInputIds].as<std::int64_t>(), length);
  const std::span labels(out[kLabels].as<std::int64_t>(), length);
  const std::span positions(out[kPositionIds].as<std::int64_t>(), length);
  const std::span numbers(out[kDocumentIds].as<std::int64_t>(), length);
  const auto fill_padding = [&](std::size_t begin, std::size_t count) {
    std::ranges::fill(tokens.subspan(begin, count), options_.pad);
    std::ranges::fill(labels.subspan(begin, count), kIgnoredLabel);
    std::ranges::fill(numbers.subspan(begin, count), -1);
  };
  std::size_t at = 0;
  std::int64_t number = 0;
  std::uint64_t read = 0;
  for (const PackPiece& piece : batch.rows[row]) {
    auto bytes = read_piece(piece, tokens.subspan(at, piece.length), labels.subspan(at, piece.length));
    if (!bytes) {
      batch.failed = piece.document;
      return std::unexpected(std::move(bytes).error());
    }
    read += *bytes;
    const std::size_t stored = padded(piece.length);
    std::iota(positions.begin() + at, positions.begin() + at + stored, std::int64_t{0});
    std::ranges::fill(numbers.subspan(at, piece.length), number++);
    fill_padding(at + piece.length, stored - piece.length);
    at += stored;
  }
  std::iota(positions.begin() + at, positions.end(), std::int64_t{0});
  fill_padding(at, length - at);
  const std::size_t part = batch.ends.size() / batch.rows.size();
  // a row of the batch is at least as long as the part
  const std::span ends(out[kEnds].as<std::int32_t>(), static_cast<std::size_t>(out[kEnds].spec.shape[0]));
  FEEDLINE_CHECK(ends.size() == part);
  std::ranges::copy(std::span(batch.ends).subspan(row * part, part), ends.begin());
  return read;
}

Result<std::uint64_t> PackedFormat::read_piece(const PackPiece& piece, std::span<std::int64_t> tokens,
                                               std::span<std::int64_t> labels) const {
  FEEDLINE_TRY(const std::uint64_t read, token_fields_.tokens->read(piece.document, piece.begin, tokens));
  FEEDLINE_TRY(const std::uint64_t more, read_labels(piece, tokens, labels));
  FEEDLINE_CHECK_OK(check_values(piece, tokens, labels));
  return read + more;
}

// Writes the labels of a piece. The label at a position is of the token there or, for kNextToken, of the next one.
Result<std::uint64_t> PackedFormat::read_labels(const PackPiece& piece, std::span<const std::int64_t> tokens,
                                                std::span<std::int64_t> labels) const {
  const bool is_shifted = options_.labels == PackLabels::kNextToken;
  const bool has_last = !is_shifted || piece.continues;  // the token after the last position is in the document
  const std::uint64_t first = piece.begin + (is_shifted ? 1 : 0);
  const auto found = labels.first(labels.size() - (has_last ? 0 : 1));
  std::uint64_t read = 0;
  if (token_fields_.labels) {
    FEEDLINE_TRY(read, token_fields_.labels->read(piece.document, first, found));
  } else {
    std::ranges::copy(tokens.subspan(is_shifted ? 1 : 0), labels.begin());
    if (is_shifted && has_last) {
      FEEDLINE_TRY(read, token_fields_.tokens->read(piece.document, piece.begin + piece.length, found.last(1)));
    }
  }
  if (token_fields_.loss_mask) {
    thread_local std::vector<std::int64_t> mask;
    mask.resize(found.size());
    FEEDLINE_TRY(const std::uint64_t more, token_fields_.loss_mask->read(piece.document, first, mask));
    read += more;
    for (std::size_t i = 0; i < found.size(); ++i) found[i] = mask[i] != 0 ? found[i] : kIgnoredLabel;
  }
  if (!is_shifted) labels.front() = kIgnoredLabel;
  if (!has_last) labels.back() = kIgnoredLabel;
  return read;
}

// Checks tokens, and labels that are not made of tokens.
Result<void> PackedFormat::check_values(const PackPiece& piece, std::span<const std::int64_t> tokens,
                                        std::span<const std::int64_t> labels) const {
  const std::uint64_t vocabulary = options_.vocabulary;
  if (vocabulary > 0) {
    const auto at = first_outside(
        tokens, [vocabulary](std::int64_t token) { return static_cast<std::uint64_t>(token) >= vocabulary; });
    if (at)
      return at_document(piece.document, "the token at position " + std::to_string(piece.begin + *at) + " is " +
                                             std::to_string(tokens[*at]) +
                                             ", but vocabulary=" + std::to_string(vocabulary));
  }
  if (!token_fields_.labels) return {};
  constexpr auto kAny = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  const std::uint64_t end = vocabulary > 0 ? vocabulary : kAny;
  const auto at = first_outside(
      labels, [end](std::int64_t label) { return static_cast<std::uint64_t>(label) >= end && label != kIgnoredLabel; });
  if (!at) return {};
  const std::uint64_t position = piece.begin + *at + (options_.labels == PackLabels::kNextToken ? 1 : 0);
  return at_document(piece.document, "the label at position " + std::to_string(position) + " is " +
                                         std::to_string(labels[*at]) + "; labels must be -100 or tokens" +
                                         (vocabulary > 0 ? " below vocabulary=" + std::to_string(vocabulary) : ""));
}

std::unexpected<Error> PackedFormat::at_document(std::uint64_t document, std::string what) const {
  Error error = data_error(std::move(what), "format").error();
  error.where = token_fields_.tokens->where(document);
  error.where.stage = "format";
  return std::unexpected(std::move(error));
}

// The document that could not be read, otherwise the first one of the row.
Where PackedFormat::where(std::uint64_t index) const {
  const FoundRow found = find(index);
  if (!found.batch || found.batch->rows[found.row].empty()) return {};
  const std::uint64_t failed = found.batch->failed;
  Where where = token_fields_.tokens->where(failed == kNone ? found.batch->rows[found.row].front().document : failed);
  where.record = failed == kNone ? found.batch->rows[found.row].front().document : failed;
  return where;
}

}  // namespace feedline::format
