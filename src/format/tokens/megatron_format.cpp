// SPDX-License-Identifier: Apache-2.0
#include "format/tokens/megatron_format.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "format/checksum.h"
#include "format/tokens/token_kernels.h"

namespace feedline::format {
namespace {

constexpr std::string_view kIndexEnd = ".idx";

// Returns the .bin file of an index; a URL may have a query after the name.
Result<std::string> data_of(const std::string& index) {
  const std::size_t name_end = std::min(index.find('?'), index.size());
  if (name_end < kIndexEnd.size() || index.compare(name_end - kIndexEnd.size(), kIndexEnd.size(), kIndexEnd) != 0)
    return config_error("the name of a Megatron index must end in .idx, so that its .bin file can be found: \"" +
                        index + "\"");
  return index.substr(0, name_end - kIndexEnd.size()) + ".bin" + index.substr(name_end);
}

std::vector<FieldDescription> fields_of(bool has_modes) {
  std::vector<FieldDescription> fields{{"tokens", FieldKind::kArray, {DType::kInt64, {kAnyLength}}},
                                       {"tokens_length", FieldKind::kArray, {DType::kInt64, {}}}};
  if (has_modes) fields.push_back({"mode", FieldKind::kArray, {DType::kInt64, {}}});
  return fields;
}

}  // namespace

Result<std::shared_ptr<const Format>> MegatronFormat::open(const std::vector<std::string>& indexes, bool documents,
                                                           const std::shared_ptr<const storage::Storage>& storage) {
  std::vector<Part> parts;
  std::uint64_t samples = 0;
  for (const std::string& path : indexes) {
    FEEDLINE_TRY(std::string data, data_of(path));
    FEEDLINE_TRY(auto index, MegatronIndex::open(path, *storage));
    if (documents) FEEDLINE_CHECK_OK(index.check_documents_contiguous());
    FEEDLINE_TRY(auto files, TokenFiles::open({{std::move(data)}}, index.dtype(), storage));
    if (files.tokens() != index.tokens())
      return index.damaged("the index describes " + std::to_string(index.tokens()) + " tokens, but the .bin file has " +
                           std::to_string(files.tokens()));
    FEEDLINE_TRY(const ToInt64 to_int64, to_int64_of(index.dtype()));
    samples += documents ? index.documents() : index.sequences();
    parts.push_back({std::move(index), std::move(files), to_int64});
  }
  if (samples == 0) return config_error(std::string("the files have no ") + (documents ? "documents" : "sequences"));
  std::uint64_t bytes = 0;
  for (const Part& part : parts) bytes += part.files.tokens() * part.files.token_bytes();
  if (bytes <= TokenFiles::most_held())
    for (Part& part : parts) part.files.hold(bytes);
  const bool has_modes =
      !documents && std::ranges::all_of(parts, [](const Part& part) { return part.index.has_modes(); });
  return std::shared_ptr<const Format>(new MegatronFormat(std::move(parts), documents, has_modes));
}

MegatronFormat::MegatronFormat(std::vector<Part> parts, bool documents, bool has_modes)
    : FilledFormat(
          fields_of(has_modes),
          sizeof(std::int64_t) *
              (parts.front().files.tokens() / std::max<std::uint64_t>(1, parts.front().index.sequences()) + 1)),
      parts_(std::move(parts)),
      documents_(documents) {
  Fingerprint fingerprint;
  fingerprint.add(name());
  fingerprint.add(documents ? "documents" : "sequences");
  std::uint64_t samples = 0;
  for (const Part& part : parts_) {
    fingerprint.add(part.index.bytes());
    part.files.add_to(fingerprint);
    ends_.push_back(samples += samples_of(part.index));
    if (!documents_) {
      longest_ = std::max(longest_, part.index.longest());
      empty_ += part.index.empty();
    }
  }
  fingerprint_ = fingerprint.value();
  for (std::uint64_t i = 0; documents_ && i < size(); ++i) {
    const std::uint64_t count = find_sample(i).count;
    longest_ = std::max(longest_, count);
    empty_ += count == 0;
  }
}

std::uint64_t MegatronFormat::samples_of(const MegatronIndex& index) const {
  return documents_ ? index.documents() : index.sequences();
}

MegatronFormat::TokenRange MegatronFormat::find_sample(std::uint64_t sample) const {
  const auto part = static_cast<std::size_t>(std::ranges::upper_bound(ends_, sample) - ends_.begin());
  FEEDLINE_CHECK(part < ends_.size());
  const MegatronIndex& index = parts_[part].index;
  TokenRange range{.part = part, .sample = sample - (part > 0 ? ends_[part - 1] : 0)};
  if (!documents_) {
    range.first = index.first_token(range.sample);
    range.count = index.length(range.sample);
    return range;
  }
  const std::uint64_t begin = index.first_sequence(range.sample), end = index.first_sequence(range.sample + 1);
  if (begin == end) return range;
  range.first = index.first_token(begin);
  range.count = index.first_token(end - 1) + index.length(end - 1) - range.first;
  return range;
}

std::uint64_t MegatronFormat::length(std::uint64_t index, std::size_t field) const {
  return field == kTokens ? find_sample(index).count : 1;
}

void MegatronFormat::lengths(std::span<const std::uint64_t> samples, std::size_t field,
                             std::span<std::uint64_t> lengths) const {
  FEEDLINE_CHECK(field == kTokens && samples.size() == lengths.size());
  if (documents_ || parts_.size() > 1) {
    for (std::size_t i = 0; i < samples.size(); ++i) lengths[i] = find_sample(samples[i]).count;
    return;
  }
  // the processor overlaps the cache misses of these independent reads
  const MegatronIndex& index = parts_.front().index;
  for (std::size_t i = 0; i < samples.size(); ++i) lengths[i] = index.length(samples[i]);
}

Result<std::uint64_t> MegatronFormat::read_integers(std::uint64_t index, std::size_t field, std::uint64_t begin,
                                                    std::span<std::int64_t> out) const {
  FEEDLINE_CHECK(field == kTokens);
  const TokenRange range = find_sample(index);
  FEEDLINE_CHECK(begin <= range.count && out.size() <= range.count - begin);
  if (out.empty()) return 0;
  const Part& part = parts_[range.part];
  FEEDLINE_TRY(const auto tokens, part.files.read(part.files.files().front(), range.first + begin, out.size()));
  part.to_int64(tokens.data(), out.size(), out.data());
  return tokens.size();
}

Result<std::uint64_t> MegatronFormat::fill(std::span<const std::uint64_t> samples,
                                           std::span<const ArrayView> first_rows) const {
  const ArrayView& tokens = first_rows[kTokens];
  const auto padded = tokens.data == nullptr ? 0 : static_cast<std::uint64_t>(tokens.spec.shape[0]);
  std::uint64_t read = 0;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const TokenRange range = find_sample(samples[i]);
    if (tokens.data != nullptr) {
      FEEDLINE_CHECK(range.count <= padded);
      const std::span row(tokens.as<std::int64_t>() + i * padded, padded);
      FEEDLINE_TRY(const std::uint64_t bytes, read_integers(samples[i], kTokens, 0, row.first(range.count)));
      std::ranges::fill(row.subspan(range.count), 0);
      read += bytes;
    }
    if (first_rows[kLength].data != nullptr)
      first_rows[kLength].as<std::int64_t>()[i] = static_cast<std::int64_t>(range.count);
    if (first_rows.size() > kMode && first_rows[kMode].data != nullptr)
      first_rows[kMode].as<std::int64_t>()[i] = parts_[range.part].index.mode(range.sample);
  }
  return read;
}

std::string MegatronFormat::summary() const {
  std::uint64_t tokens = 0;
  for (const Part& part : parts_) tokens += part.files.tokens();
  const std::string unit = documents_ ? " documents" : " sequences";
  return std::to_string(size()) + unit + " with " + std::to_string(tokens) + " tokens of dtype " +
         std::string(name_of(parts_.front().index.dtype())) + ", at most " + std::to_string(longest_) + " each" +
         (empty_ > 0 ? "; " + std::to_string(empty_) + unit + " have no tokens" : "");
}

Result<Inspection> MegatronFormat::inspect() const {
  Inspection inspection{.format = std::string(name()), .samples = size(), .shards = parts_.size()};
  for (const Part& part : parts_) inspection.bytes += part.files.tokens() * part.files.token_bytes();
  for (const FieldDescription& field : fields()) inspection.fields.push_back(field.name);
  if (empty_ > 0)
    inspection.findings.push_back({.code = "empty_document",
                                   .severity = "note",
                                   .text = std::to_string(empty_) + (documents_ ? " documents" : " sequences") +
                                           " have no tokens; pack_sequences() skips them"});
  return inspection;
}

Where MegatronFormat::where(std::uint64_t index) const {
  const TokenRange range = find_sample(index);
  Where where = parts_[range.part].files.where(0, range.first);
  where.key = (documents_ ? "document " : "sequence ") + std::to_string(range.sample);
  where.record = index;
  return where;
}

}  // namespace feedline::format
