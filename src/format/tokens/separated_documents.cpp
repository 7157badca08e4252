// SPDX-License-Identifier: Apache-2.0
#include "format/tokens/separated_documents.h"

#include "format/tokens/indexed_token_format.h"
#include "format/tokens/token_kernels.h"

namespace feedline::format {

Result<std::shared_ptr<const RowFormat>> open_whole_documents(const std::vector<TokenFile>& files,
                                                              const TokenOptions& options,
                                                              const std::shared_ptr<const storage::Storage>& storage) {
  std::vector<IndexedTokens> parts;
  bool has_separator = false;
  for (const TokenFile& file : files) {
    FEEDLINE_TRY(auto opened, TokenFiles::open({file}, options.stored, storage));
    std::vector<std::uint64_t> ends;
    const auto see = [&](std::size_t number, std::uint64_t first, std::span<const std::byte> tokens) -> Result<void> {
      if (options.vocabulary > 0) FEEDLINE_CHECK_OK(opened.check(number, first, tokens, options.vocabulary));
      find_token(options.stored, tokens, *options.separator, first + 1, ends);
      return {};
    };
    FEEDLINE_CHECK_OK(opened.read_all(see));
    has_separator = has_separator || !ends.empty();
    const std::uint64_t tokens = opened.files().front().tokens;
    if (tokens > (ends.empty() ? 0 : ends.back())) ends.push_back(tokens);
    parts.push_back({std::make_shared<const SeparatedDocuments>(std::move(ends)), std::move(opened)});
  }
  if (parts.empty()) return config_error("tokens: at least one file is needed");
  if (!has_separator) return no_separator(parts.front().files, *options.separator);
  return IndexedTokenFormat::make("tokens", "documents", std::move(parts),
                                  options.memory_bytes.value_or(TokenFiles::most_held()));
}

}  // namespace feedline::format
