// SPDX-License-Identifier: Apache-2.0
#include "format/packed/packed_format.h"

#include <algorithm>
#include <mutex>
#include <numeric>
#include <string>
#include <utility>

#include "base/check.h"

namespace feedline::format {
namespace {

constexpr std::int64_t kIgnoredLabel = -100;  // ignore_index of torch's cross_entropy
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

// Returns the first token that is not below `vocabulary`, or nullopt.
std::optional<std::size_t> first_outside(std::span<const std::int64_t> tokens, std::uint64_t vocabulary) {
  bool any = false;  // without a branch, so that the loop is vectorized
  for (const std::int64_t token : tokens) any |= static_cast<std::uint64_t>(token) >= vocabulary;
  if (!any) return {};
  const auto found = std::ranges::find_if(
      tokens, [vocabulary](std::int64_t token) { return static_cast<std::uint64_t>(token) >= vocabulary; });
  return static_cast<std::size_t>(found - tokens.begin());
}

}  // namespace

PackedFormat::PackedFormat(std::shared_ptr<const Sequences> sequences, const PackOptions& options)
    : FilledFormat(fields_of(options), 4 * sizeof(std::int64_t) * options.length),
      sequences_(std::move(sequences)),
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
      end_segment(piece.length);
      used += piece.length;
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
    std::iota(positions.begin() + at, positions.begin() + at + piece.length, std::int64_t{0});
    std::ranges::fill(numbers.subspan(at, piece.length), number++);
    at += piece.length;
  }
  std::ranges::fill(tokens.subspan(at), options_.pad);
  std::ranges::fill(labels.subspan(at), kIgnoredLabel);
  std::iota(positions.begin() + at, positions.end(), std::int64_t{0});
  std::ranges::fill(numbers.subspan(at), -1);
  const std::size_t part = batch.ends.size() / batch.rows.size();
  // a row of the batch is at least as long as the part
  const std::span ends(out[kEnds].as<std::int32_t>(), static_cast<std::size_t>(out[kEnds].spec.shape[0]));
  FEEDLINE_CHECK(ends.size() == part);
  std::ranges::copy(std::span(batch.ends).subspan(row * part, part), ends.begin());
  return read;
}

Result<std::uint64_t> PackedFormat::read_piece(const PackPiece& piece, std::span<std::int64_t> tokens,
                                               std::span<std::int64_t> labels) const {
  FEEDLINE_TRY(std::uint64_t read, sequences_->read(piece.document, piece.begin, tokens));
  if (options_.labels == PackLabels::kSame) {
    labels.front() = kIgnoredLabel;
    std::ranges::copy(tokens.subspan(1), labels.begin() + 1);
  } else {
    std::ranges::copy(tokens.subspan(1), labels.begin());
    labels.back() = kIgnoredLabel;
    if (piece.continues) {
      FEEDLINE_TRY(const std::uint64_t more,
                   sequences_->read(piece.document, piece.begin + piece.length, labels.last(1)));
      read += more;
    }
  }
  if (options_.vocabulary == 0) return read;
  if (const auto outside = first_outside(tokens, options_.vocabulary)) {
    Error error =
        data_error("the token at position " + std::to_string(piece.begin + *outside) + " is " +
                       std::to_string(tokens[*outside]) + ", but vocabulary=" + std::to_string(options_.vocabulary),
                   "format")
            .error();
    error.where = sequences_->where(piece.document);
    error.where.stage = "format";
    return std::unexpected(std::move(error));
  }
  return read;
}

// Returns the location of the document that could not be read, or of the row's first document.
Where PackedFormat::where(std::uint64_t index) const {
  const FoundRow found = find(index);
  if (!found.batch || found.batch->rows[found.row].empty()) return {};
  const std::uint64_t failed = found.batch->failed;
  Where where = sequences_->where(failed == kNone ? found.batch->rows[found.row].front().document : failed);
  where.record = failed == kNone ? found.batch->rows[found.row].front().document : failed;
  return where;
}

}  // namespace feedline::format
