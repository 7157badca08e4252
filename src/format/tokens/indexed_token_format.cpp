// SPDX-License-Identifier: Apache-2.0
#include "format/tokens/indexed_token_format.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/check.h"
#include "format/checksum.h"

namespace feedline::format {
namespace {

std::vector<FieldDescription> fields_of(const std::vector<IndexedTokens>& parts) {
  std::vector<FieldDescription> fields{{"tokens", FieldKind::kArray, {DType::kInt64, {kAnyLength}}},
                                       {"tokens_length", FieldKind::kArray, {DType::kInt64, {}}}};
  if (std::ranges::all_of(parts, [](const IndexedTokens& part) { return part.index->has_modes(); }))
    fields.push_back({"mode", FieldKind::kArray, {DType::kInt64, {}}});
  else if (std::ranges::all_of(parts, [](const IndexedTokens& part) { return part.loss_mask.has_value(); }))
    fields.push_back({"loss_mask", FieldKind::kArray, {DType::kBool, {kAnyLength}}});
  return fields;
}

}  // namespace

Result<std::shared_ptr<const RowFormat>> IndexedTokenFormat::make(std::string_view name, std::string_view unit,
                                                                  std::vector<IndexedTokens> tokens,
                                                                  std::uint64_t most_held) {
  std::vector<FieldDescription> fields = fields_of(tokens);
  std::vector<Part> parts;
  std::uint64_t samples = 0, bytes = 0;
  for (IndexedTokens& part : tokens) {
    FEEDLINE_TRY(const ToInt64 to_int64, to_int64_of(part.files.stored()));
    samples += part.index->samples();
    bytes += part.files.tokens() * part.files.token_bytes();
    parts.push_back({std::move(part), to_int64});
  }
  if (samples == 0) return config_error("the files have no " + std::string(unit));
  if (bytes <= most_held)
    for (Part& part : parts) part.tokens.files.hold(bytes);
  return std::shared_ptr<const RowFormat>(new IndexedTokenFormat(name, unit, std::move(parts), std::move(fields)));
}

IndexedTokenFormat::IndexedTokenFormat(std::string_view name, std::string_view unit, std::vector<Part> parts,
                                       std::vector<FieldDescription> fields)
    : FilledFormat(std::move(fields),
                   sizeof(std::int64_t) * (parts.front().tokens.files.tokens() /
                                               std::max<std::uint64_t>(1, parts.front().tokens.index->samples()) +
                                           1)),
      name_(name),
      unit_(unit),
      parts_(std::move(parts)) {
  Fingerprint fingerprint;
  fingerprint.add(name_);
  fingerprint.add(unit_);
  std::uint64_t samples = 0;
  for (const Part& part : parts_) {
    const TokenIndex& index = *part.tokens.index;
    fingerprint.add(index.bytes());
    part.tokens.files.add_to(fingerprint);
    ends_.push_back(samples += index.samples());
    for (std::uint64_t i = 0; i < index.samples(); ++i) {
      const std::uint64_t count = index.range(i).count;
      longest_ = std::max(longest_, count);
      empty_ += count == 0;
    }
  }
  fingerprint_ = fingerprint.value();
}

IndexedTokenFormat::Sample IndexedTokenFormat::find_sample(std::uint64_t sample) const {
  const auto part = static_cast<std::size_t>(std::ranges::upper_bound(ends_, sample) - ends_.begin());
  FEEDLINE_CHECK(part < ends_.size());
  const std::uint64_t number = sample - (part > 0 ? ends_[part - 1] : 0);
  return {&parts_[part], number, parts_[part].tokens.index->range(number)};
}

std::uint64_t IndexedTokenFormat::length(std::uint64_t index, std::size_t field) const {
  return is_ragged(field) ? find_sample(index).range.count : 1;
}

void IndexedTokenFormat::lengths(std::span<const std::uint64_t> samples, std::size_t field,
                                 std::span<std::uint64_t> lengths) const {
  FEEDLINE_CHECK(is_ragged(field) && samples.size() == lengths.size());
  if (parts_.size() == 1) return parts_.front().tokens.index->lengths(samples, lengths);
  for (std::size_t i = 0; i < samples.size(); ++i) lengths[i] = find_sample(samples[i]).range.count;
}

Result<std::uint64_t> IndexedTokenFormat::read_mask(const Sample& sample, std::uint64_t begin,
                                                    std::span<std::uint8_t> out) const {
  const TokenFiles& files = *sample.part->tokens.loss_mask;
  FEEDLINE_TRY(const auto bytes, files.read(files.files().front(), sample.range.first + begin, out.size()));
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = bytes[i] != std::byte{0};
  return bytes.size();
}

Result<std::uint64_t> IndexedTokenFormat::read_integers(std::uint64_t index, std::size_t field, std::uint64_t begin,
                                                        std::span<std::int64_t> out) const {
  FEEDLINE_CHECK(is_ragged(field));
  const Sample sample = find_sample(index);
  FEEDLINE_CHECK(begin <= sample.range.count && out.size() <= sample.range.count - begin);
  if (out.empty()) return 0;
  if (field != kTokens) {
    thread_local std::vector<std::uint8_t> mask;
    mask.resize(out.size());
    FEEDLINE_TRY(const std::uint64_t bytes, read_mask(sample, begin, mask));
    std::ranges::copy(mask, out.begin());
    return bytes;
  }
  const TokenFiles& files = sample.part->tokens.files;
  FEEDLINE_TRY(const auto tokens, files.read(files.files().front(), sample.range.first + begin, out.size()));
  sample.part->to_int64(tokens.data(), out.size(), out.data());
  return tokens.size();
}

Result<std::uint64_t> IndexedTokenFormat::fill(std::span<const std::uint64_t> samples,
                                               std::span<const ArrayView> first_rows) const {
  const auto padded_of = [](const ArrayView& row) {
    return row.data == nullptr ? 0 : static_cast<std::uint64_t>(row.spec.shape[0]);
  };
  const ArrayView more = first_rows.size() > kMore ? first_rows[kMore] : ArrayView{};
  const std::uint64_t padded = padded_of(first_rows[kTokens]);
  const std::uint64_t padded_mask = more.data != nullptr && is_ragged(kMore) ? padded_of(more) : 0;
  std::uint64_t read = 0;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const Sample sample = find_sample(samples[i]);
    const std::uint64_t count = sample.range.count;
    if (first_rows[kTokens].data != nullptr) {
      FEEDLINE_CHECK(count <= padded);
      const std::span row(first_rows[kTokens].as<std::int64_t>() + i * padded, padded);
      FEEDLINE_TRY(const std::uint64_t bytes, read_integers(samples[i], kTokens, 0, row.first(count)));
      std::ranges::fill(row.subspan(count), 0);
      read += bytes;
    }
    if (first_rows[kLength].data != nullptr)
      first_rows[kLength].as<std::int64_t>()[i] = static_cast<std::int64_t>(count);
    if (more.data == nullptr) continue;
    if (!is_ragged(kMore)) {
      more.as<std::int64_t>()[i] = sample.part->tokens.index->mode(sample.number);
      continue;
    }
    FEEDLINE_CHECK(count <= padded_mask);
    const std::span row(reinterpret_cast<std::uint8_t*>(more.data) + i * padded_mask, padded_mask);
    if (count > 0) {
      FEEDLINE_TRY(const std::uint64_t bytes, read_mask(sample, 0, row.first(count)));
      read += bytes;
    }
    std::ranges::fill(row.subspan(count), 0);
  }
  return read;
}

std::string IndexedTokenFormat::summary() const {
  std::uint64_t tokens = 0;
  for (const Part& part : parts_) tokens += part.tokens.files.tokens();
  return std::to_string(size()) + " " + unit_ + " with " + std::to_string(tokens) + " tokens of dtype " +
         std::string(name_of(parts_.front().tokens.files.stored())) + ", at most " + std::to_string(longest_) +
         " each" + (empty_ > 0 ? "; " + std::to_string(empty_) + " " + unit_ + " have no tokens" : "");
}

Result<Inspection> IndexedTokenFormat::inspect() const {
  Inspection inspection{.format = name_, .samples = size(), .shards = parts_.size()};
  for (const Part& part : parts_) inspection.bytes += part.tokens.files.tokens() * part.tokens.files.token_bytes();
  for (const FieldDescription& field : fields()) inspection.fields.push_back(field.name);
  if (empty_ > 0)
    inspection.findings.push_back(
        {.code = "empty_document",
         .severity = "note",
         .text = std::to_string(empty_) + " " + unit_ + " have no tokens; pack_sequences() skips them"});
  return inspection;
}

Where IndexedTokenFormat::where(std::uint64_t index) const {
  const Sample sample = find_sample(index);
  Where where = sample.part->tokens.files.where(0, sample.range.first);
  where.key = unit_.substr(0, unit_.size() - 1) + " " + std::to_string(sample.number);
  where.record = index;
  return where;
}

std::string name_with_end(const std::string& path, std::string_view end) {
  const std::size_t name_end = std::min(path.find('?'), path.size());
  return path.substr(0, name_end) + std::string(end) + path.substr(name_end);
}

Result<std::optional<TokenFiles>> open_loss_mask(const std::string& path, std::uint64_t tokens,
                                                 const std::shared_ptr<const storage::Storage>& storage) {
  const auto stat = storage->stat(path);
  if (!stat && stat.error().system_errno == ENOENT) return std::nullopt;
  // S3 answers so for objects that do not exist, without the permission to list the bucket
  if (!stat && stat.error().system_errno == EACCES && storage->is_remote()) return std::nullopt;
  FEEDLINE_CHECK_OK(stat);
  if (stat->bytes == tokens) return TokenFiles::open({{path}}, DType::kUint8, storage);
  auto error = data_error("the file has " + std::to_string(stat->bytes) + " bytes, but the index describes " +
                              std::to_string(tokens) + " tokens; a loss mask has one byte per token",
                          "format");
  error.error().where.shard = path;
  return error;
}

Result<void> check_loss_masks(std::span<const IndexedTokens> parts, std::span<const std::string> paths,
                              std::string_view end) {
  FEEDLINE_CHECK(parts.size() == paths.size());
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const bool has_mask = parts[i].loss_mask.has_value();
    if (has_mask == parts.front().loss_mask.has_value()) continue;
    return config_error("'" + (has_mask ? paths.front() : paths[i]) + "' has no loss mask (" + std::string(end) +
                        "), but '" + (has_mask ? paths[i] : paths.front()) + "' has one: open them separately");
  }
  return {};
}

Result<Inspection> inspect_indexed_tokens(std::string_view name, const Result<std::shared_ptr<const Format>>& opened) {
  if (opened) return (*opened)->inspect();
  const Error& error = opened.error();
  if (error.where.shard.empty()) return std::unexpected(error);  // not about the contents of a file
  Inspection inspection{.format = std::string(name)};
  inspection.findings.push_back({.code = error.code == ErrorCode::kStorage ? "unreadable_file" : "damaged_index",
                                 .severity = "error",
                                 .shard = error.where.shard,
                                 .text = error.what});
  return inspection;
}

}  // namespace feedline::format
