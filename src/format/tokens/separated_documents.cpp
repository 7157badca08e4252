// SPDX-License-Identifier: Apache-2.0
#include "format/tokens/separated_documents.h"

#include <optional>
#include <string>

#include "format/tokens/indexed_token_format.h"
#include "format/tokens/token_kernels.h"

namespace feedline::format {

namespace {

// Returns the ends of the documents in a file, and whether they were given or the separator occurs.
Result<std::pair<std::vector<std::uint64_t>, bool>> find_ends(const TokenFile& file, const TokenFiles& opened,
                                                              const TokenOptions& options) {
  std::vector<std::uint64_t> ends;
  const auto see = [&](std::size_t number, std::uint64_t first, std::span<const std::byte> tokens) -> Result<void> {
    if (options.vocabulary > 0) FEEDLINE_CHECK_OK(opened.check(number, first, tokens, options.vocabulary));
    if (!file.ends) find_token(options.stored, tokens, *options.separator, first + 1, ends);
    return {};
  };
  if (!file.ends || options.vocabulary > 0) FEEDLINE_CHECK_OK(opened.read_all(see));
  const std::uint64_t tokens = opened.files().front().tokens;
  if (file.ends) {
    if (file.ends->empty() || file.ends->back() <= tokens) return std::pair(*file.ends, true);
    auto error = data_error("tokens: the last document ends at token " + std::to_string(file.ends->back()) +
                                ", but the file has " + std::to_string(tokens) + " tokens",
                            "format");
    error.error().where.shard = file.path;
    return error;
  }
  const bool has_separator = !ends.empty();
  if (tokens > (ends.empty() ? 0 : ends.back())) ends.push_back(tokens);
  return std::pair(std::move(ends), has_separator);
}

Result<std::optional<TokenFiles>> open_given_mask(const std::string& path, std::uint64_t tokens,
                                                  const std::shared_ptr<const storage::Storage>& storage) {
  if (path.empty()) return std::nullopt;
  FEEDLINE_CHECK_OK(storage->stat(path));
  return open_loss_mask(path, tokens, storage);
}

}  // namespace

Result<std::shared_ptr<const RowFormat>> open_whole_documents(const std::vector<TokenFile>& files,
                                                              const TokenOptions& options,
                                                              const std::shared_ptr<const storage::Storage>& storage) {
  std::vector<IndexedTokens> parts;
  std::vector<std::string> paths;
  bool has_ends = false;
  for (const TokenFile& file : files) {
    FEEDLINE_TRY(auto opened, TokenFiles::open({{file.path, file.offset}}, options.stored, storage));
    FEEDLINE_TRY(auto found, find_ends(file, opened, options));
    has_ends = has_ends || found.second;
    FEEDLINE_TRY(auto mask, open_given_mask(file.loss_mask, opened.files().front().tokens, storage));
    parts.push_back(
        {std::make_shared<const SeparatedDocuments>(std::move(found.first)), std::move(opened), std::move(mask)});
    paths.push_back(file.path);
  }
  if (parts.empty()) return config_error("tokens: at least one file is needed");
  if (!has_ends) return no_separator(parts.front().files, *options.separator);
  FEEDLINE_CHECK_OK(check_loss_masks(parts, paths, "loss_masks"));
  return IndexedTokenFormat::make("tokens", "documents", std::move(parts),
                                  options.memory_bytes.value_or(TokenFiles::most_held()));
}

}  // namespace feedline::format
