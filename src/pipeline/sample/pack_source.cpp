// SPDX-License-Identifier: Apache-2.0
#include "pipeline/sample/pack_source.h"

#include <utility>

#include "format/checksum.h"
#include "format/packed/packed_format.h"
#include "format/packed/sequences.h"

namespace feedline::pipeline {
namespace {

constexpr std::uint64_t kMostTokens = std::uint64_t{1} << 28;     // of a row: 256 Mi, which take 8 GiB
constexpr std::uint64_t kMostDocuments = std::uint64_t{1} << 26;  // of a window, which take 3 GB while it is packed

Result<void> check(const PackOptions& options) {
  if (options.length < 2 || options.length > kMostTokens)
    return config_error("pack_sequences: length must be between 2 and " + std::to_string(kMostTokens) +
                        " tokens, got " + std::to_string(options.length));
  if (options.window == 0 || options.window > kMostDocuments)
    return config_error("pack_sequences: window must be between 1 and " + std::to_string(kMostDocuments) +
                        " documents, got " + std::to_string(options.window));
  if (options.document_multiple == 0 || options.length % options.document_multiple != 0)
    return config_error("pack_sequences: length=" + std::to_string(options.length) +
                        " is not a multiple of pad_to_multiple_of=" + std::to_string(options.document_multiple));
  if (options.method == PackMethod::kConcat && options.overlong != LongDocuments::kSplit)
    return config_error("pack_sequences: method=\"concat\" splits documents at the ends of rows; pass long=\"split\"");
  if (options.vocabulary > 0 && (options.pad < 0 || static_cast<std::uint64_t>(options.pad) >= options.vocabulary))
    return config_error("pack_sequences: pad=" + std::to_string(options.pad) + " is outside the vocabulary of " +
                        std::to_string(options.vocabulary));
  return {};
}

}  // namespace

Result<PackSource> PackSource::make(const Source& sequences, const PackOptions& options) {
  FEEDLINE_CHECK_OK(check(options));
  FEEDLINE_TRY(auto fields, format::token_fields_of(sequences.format(), options.field, sequences.name()));
  auto shared = std::make_shared<const format::TokenFields>(std::move(fields));
  auto packed = std::make_shared<format::PackedFormat>(*shared, options);
  return PackSource(sequences, std::move(shared), std::move(packed), options);
}

PackSource::PackSource(Source sequences, std::shared_ptr<const format::TokenFields> fields,
                       std::shared_ptr<format::PackedFormat> packed, const PackOptions& options)
    : sequences_(std::move(sequences)),
      packs_(sequences_.name(), packed),
      fields_(std::move(fields)),
      packed_(std::move(packed)),
      options_(options) {}

PackSource PackSource::with_own_packs(PackLabels labels) const {
  PackOptions options = options_;
  options.labels = labels;
  return PackSource(sequences_, fields_, std::make_shared<format::PackedFormat>(*fields_, options), options);
}

std::string PackSource::describe() const {
  const std::string method = options_.method == PackMethod::kBestFit ? "best_fit" : "concat";
  const std::string overlong = options_.overlong == LongDocuments::kSplit      ? "split"
                               : options_.overlong == LongDocuments::kTruncate ? "truncated"
                                                                               : "dropped";
  return "rows of " + std::to_string(options_.length) + " tokens, " + method + " in windows of " +
         std::to_string(options_.window) + " documents, longer ones " + overlong +
         (options_.document_multiple > 1
              ? ", documents padded to multiples of " + std::to_string(options_.document_multiple)
              : "");
}

std::string PackSource::describe_contents() const {
  return std::string(options_.labels == PackLabels::kSame ? "labels input_ids" : "labels next_token") +
         (fields_->labels ? " of the field labels" : "") + (fields_->loss_mask ? " in the loss mask" : "") + ", pad " +
         std::to_string(options_.pad);
}

void PackSource::lengths(std::span<const std::uint64_t> documents, std::span<std::uint64_t> lengths) const {
  fields_->tokens->lengths(documents, lengths);
}

std::uint64_t PackSource::fingerprint() const {
  format::Fingerprint fingerprint;
  fingerprint.add("packed");
  fingerprint.add(sequences_.fingerprint());
  fingerprint.add(options_.field);
  fingerprint.add(describe());
  return fingerprint.value();
}

std::uint64_t PackSource::add(std::vector<std::vector<PackPiece>> rows) const { return packed_->add(std::move(rows)); }
void PackSource::forget_before(std::uint64_t first) const { packed_->forget_before(first); }
std::optional<PackSegments> PackSource::segments_of(std::uint64_t sample) const { return packed_->segments_of(sample); }

}  // namespace feedline::pipeline
