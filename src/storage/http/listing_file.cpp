// SPDX-License-Identifier: Apache-2.0
#include "storage/http/listing_file.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "storage/http/response_head.h"
#include "storage/http/url.h"

namespace feedline::storage {
namespace {

constexpr std::string_view kHead = "feedline-listing 1 ";

std::unexpected<Error> no_listing(const std::string& why) {
  return data_error("the file is not a listing written by `feedline index`: " + why, "storage");
}

// Accepts only relative paths without ".", "..", or empty components; a trailing slash is allowed.
bool is_below(std::string_view path) {
  while (true) {
    const std::size_t end = std::min(path.find('/'), path.size());
    const std::string_view part = path.substr(0, end);
    if (part.empty() || part == "." || part == "..") return false;
    if (end + 1 >= path.size()) return true;
    path.remove_prefix(end + 1);
  }
}

}  // namespace

Result<Tree> parse_listing_file(std::string_view text) {
  const std::size_t head_end = text.find('\n');
  if (!text.starts_with(kHead) || head_end == text.npos)
    return no_listing("the first line is not 'feedline-listing 1 N'");
  const auto lines = parse_size(text.substr(kHead.size(), head_end - kHead.size()));
  text.remove_prefix(head_end + 1);
  if (!lines || static_cast<std::uint64_t>(std::ranges::count(text, '\n')) != *lines)
    return no_listing("the number of lines differs from the header");
  Tree tree;
  for (std::size_t line = 2; !text.empty(); ++line) {
    const std::size_t end = text.find('\n'), space = text.find(' ');
    const auto bad = [&](const char* what) { return no_listing("line " + std::to_string(line) + " " + what); };
    if (end == text.npos) return bad("is cut");
    if (space >= end) return bad("has no size and path");
    const auto bytes = parse_size(text.substr(0, space));
    auto path = percent_decoded(text.substr(space + 1, end - space - 1));
    if (!bytes || !path || !is_below(*path)) return bad("has no size and path below the folder");
    text.remove_prefix(end + 1);
    if (!path->ends_with('/')) {
      tree.objects.push_back({std::move(*path), *bytes, 0});
      continue;
    }
    path->pop_back();
    tree.marks.push_back(std::move(*path));
  }
  return tree;
}

}  // namespace feedline::storage
