// SPDX-License-Identifier: Apache-2.0
#include "format/tokens/megatron_entry.h"

#include <algorithm>
#include <array>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "format/sources/source_list.h"
#include "format/tokens/indexed_token_format.h"
#include "format/tokens/megatron_index.h"

namespace feedline::format {
namespace {

constexpr std::string_view kWhat = "Megatron index (.idx)", kIndexEnd = ".idx", kMaskEnd = ".loss_mask";

class MegatronSequences final : public TokenIndex {
 public:
  explicit MegatronSequences(MegatronIndex index) : index_(std::move(index)) {}
  std::uint64_t samples() const override { return index_.sequences(); }
  TokenRange range(std::uint64_t sample) const override { return {index_.first_token(sample), index_.length(sample)}; }
  // The processor overlaps the cache misses of these independent reads.
  void lengths(std::span<const std::uint64_t> samples, std::span<std::uint64_t> lengths) const override {
    for (std::size_t i = 0; i < samples.size(); ++i) lengths[i] = index_.length(samples[i]);
  }
  bool has_modes() const override { return index_.has_modes(); }
  std::int64_t mode(std::uint64_t sample) const override { return index_.mode(sample); }
  std::span<const std::byte> bytes() const override { return index_.bytes(); }

 private:
  MegatronIndex index_;
};

// Requires: the sequences of each document are stored one after the other.
class MegatronDocuments final : public TokenIndex {
 public:
  explicit MegatronDocuments(MegatronIndex index) : index_(std::move(index)) {}
  std::uint64_t samples() const override { return index_.documents(); }
  TokenRange range(std::uint64_t sample) const override {
    const std::uint64_t begin = index_.first_sequence(sample), end = index_.first_sequence(sample + 1);
    if (begin == end) return {};
    const std::uint64_t first = index_.first_token(begin);
    return {first, index_.first_token(end - 1) + index_.length(end - 1) - first};
  }
  std::span<const std::byte> bytes() const override { return index_.bytes(); }

 private:
  MegatronIndex index_;
};

// Returns the name of the files without .idx; a URL may have a query after the name.
Result<std::string> prefix_of(const std::string& index) {
  const std::size_t name_end = std::min(index.find('?'), index.size());
  if (name_end < kIndexEnd.size() || index.compare(name_end - kIndexEnd.size(), kIndexEnd.size(), kIndexEnd) != 0)
    return config_error("the name of a Megatron index must end in .idx, so that its .bin file can be found: \"" +
                        index + "\"");
  return index.substr(0, name_end - kIndexEnd.size()) + index.substr(name_end);
}

Result<IndexedTokens> open_part(const std::string& path, const OpenOptions& options) {
  FEEDLINE_TRY(const std::string prefix, prefix_of(path));
  FEEDLINE_TRY(auto index, MegatronIndex::open(path, *options.storage));
  if (options.documents) FEEDLINE_CHECK_OK(index.check_documents_contiguous());
  FEEDLINE_TRY(auto files, TokenFiles::open({{name_with_end(prefix, ".bin")}}, index.dtype(), options.storage));
  if (files.tokens() != index.tokens())
    return index.damaged("the index describes " + std::to_string(index.tokens()) + " tokens, but the .bin file has " +
                         std::to_string(files.tokens()));
  FEEDLINE_TRY(auto mask, open_loss_mask(name_with_end(prefix, kMaskEnd), index.tokens(), options.storage));
  if (options.documents)
    return IndexedTokens{std::make_shared<const MegatronDocuments>(std::move(index)), std::move(files),
                         std::move(mask)};
  return IndexedTokens{std::make_shared<const MegatronSequences>(std::move(index)), std::move(files), std::move(mask)};
}

bool has_name_of_index(std::string_view path) { return path.substr(0, path.find('?')).ends_with(kIndexEnd); }

// Recognises remote files and lists by name, without requests.
Result<bool> is_megatron(const std::string& source, const storage::Storage& storage) {
  const std::string part = first_of_list(source, storage);
  if (!has_name_of_index(part)) return false;
  if (storage.is_remote() || is_list(split_list(source).front())) return true;
  const auto reader = storage.open(part, storage::Access::kRead);
  if (!reader) return true;  // opening the file reports the error
  std::array<std::byte, 9> front;
  const auto got = (*reader)->read_at(0, front);
  return got && begins_as_megatron_index(std::span(front).first(*got));
}

Result<std::shared_ptr<const Format>> open_files(const std::string& source, const OpenOptions& options) {
  if (!options.fields.empty()) return config_error("fields: Megatron files always have the field tokens; omit fields=");
  FEEDLINE_TRY(const auto indexes, shards_of(source, *options.storage, kWhat));
  std::vector<IndexedTokens> parts;
  for (const std::string& path : indexes) {
    FEEDLINE_TRY(auto part, open_part(path, options));
    parts.push_back(std::move(part));
  }
  FEEDLINE_CHECK_OK(check_loss_masks(parts, indexes, kMaskEnd));
  return IndexedTokenFormat::make("megatron", options.documents ? "documents" : "sequences", std::move(parts));
}

Result<Inspection> inspect_files(const std::string& source, const OpenOptions& options) {
  return inspect_indexed_tokens("megatron", open_files(source, options));
}

}  // namespace

const FormatEntry& megatron_entry() {
  static constexpr FormatEntry kEntry{
      .name = "megatron", .sniff = is_megatron, .open = open_files, .inspect = inspect_files, .has_documents = true};
  return kEntry;
}

}  // namespace feedline::format
