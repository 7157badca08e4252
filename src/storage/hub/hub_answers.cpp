// SPDX-License-Identifier: Apache-2.0
#include "storage/hub/hub_answers.h"

#include <cerrno>
#include <chrono>

#include "storage/http/response_head.h"
#include "storage/http/url.h"
#include "storage/hub/hub_name.h"
#include "text/json_reader.h"

namespace feedline::storage {
namespace {

std::unexpected<Error> unreadable(std::string_view what, const text::JsonReader& json) {
  return storage_error("the Hub's response for the " + std::string(what) + " is invalid" +
                           (json.error() ? ": " + json.problem() : std::string()) +
                           "; check that HF_ENDPOINT names a Hugging Face Hub",
                       EREMOTEIO);
}

bool take_text(text::JsonReader& json, std::string& text) {
  return json.peek() == text::JsonReader::Kind::kString ? json.take_string(text) : json.skip();
}

bool take_size(text::JsonReader& json, std::uint64_t& bytes) {
  if (json.peek() != text::JsonReader::Kind::kNumber) return json.skip();
  text::JsonNumber number;
  if (!json.take_number(number)) return false;
  if (!number.whole || *number.whole < 0) return json.fail(json.offset(), "a size is not a number of bytes");
  bytes = static_cast<std::uint64_t>(*number.whole);
  return true;
}

bool take_file(text::JsonReader& json, HubFile& file) {
  std::string type, git, lfs, xet;
  const bool is_read = json.object([&](const std::string& key) {
    if (key == "type") return take_text(json, type);
    if (key == "path") return take_text(json, file.path);
    if (key == "size") return take_size(json, file.bytes);
    if (key == "oid") return take_text(json, git);
    if (key == "xetHash") return take_text(json, xet);
    if (key == "lfs" && json.peek() == text::JsonReader::Kind::kObject)
      return json.object([&](const std::string& of_lfs) {
        if (of_lfs == "oid") return take_text(json, lfs);
        if (of_lfs == "size") return take_size(json, file.bytes);
        return json.skip();
      });
    return json.skip();
  });
  file.is_folder = type == "directory";
  file.is_large = !lfs.empty() || !xet.empty();
  file.hash = lfs.empty() ? git : lfs;
  return is_read;
}

// A path that could leave the repository is refused, because it becomes part of a URL and of a local path.
bool is_inside(std::string_view path) {
  if (path.empty() || path.front() == '/') return false;
  for (std::string_view rest = path; !rest.empty();) {
    const std::string_view part = rest.substr(0, rest.find('/'));
    if (part == ".." || part == "." || part.empty() || part.find('\0') != part.npos) return false;
    rest.remove_prefix(std::min(part.size() + 1, rest.size()));
  }
  return !path.ends_with('/');
}

std::optional<std::string> parameter(std::string_view url, std::string_view name) {
  const std::size_t question = url.find('?');
  if (question == url.npos) return {};
  for (std::string_view query = url.substr(question + 1); !query.empty();) {
    const std::string_view part = query.substr(0, query.find('&'));
    if (part.starts_with(name) && part.substr(name.size()).starts_with('='))
      return percent_decoded(part.substr(name.size() + 1));
    query.remove_prefix(std::min(part.size() + 1, query.size()));
  }
  return {};
}

// "20260102T030405Z"
std::optional<std::int64_t> seconds_of_stamp(std::string_view text) {
  constexpr std::size_t kLength = 16;
  if (text.size() != kLength || text[8] != 'T' || text[15] != 'Z') return {};
  const auto number = [&](std::size_t at, std::size_t digits) { return parse_size(text.substr(at, digits)); };
  const auto year = number(0, 4), month = number(4, 2), day = number(6, 2), hour = number(9, 2), minute = number(11, 2),
             second = number(13, 2);
  if (!year || !month || !day || !hour || !minute || !second) return {};
  const std::chrono::year_month_day date{std::chrono::year(static_cast<int>(*year)),
                                         std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day))};
  if (!date.ok()) return {};
  return std::chrono::sys_days(date).time_since_epoch().count() * std::int64_t{86'400} +
         static_cast<std::int64_t>(*hour * 3600 + *minute * 60 + *second);
}

}  // namespace

Result<std::vector<HubFile>> parse_hub_tree(std::string_view text) {
  text::JsonReader json(text);
  std::vector<HubFile> files;
  const bool is_read = json.array([&] {
    HubFile file;
    if (!take_file(json, file)) return false;
    if (!is_inside(file.path)) return json.fail(json.offset(), "an entry has no valid path");
    files.push_back(std::move(file));
    return true;
  });
  if (!is_read || !json.finish()) return unreadable("list of files", json);
  return files;
}

Result<HubRevision> parse_hub_revision(std::string_view text) {
  text::JsonReader json(text);
  HubRevision found;
  const bool is_read = json.object([&](const std::string& key) {
    if (key == "id") return take_text(json, found.repository);
    if (key == "sha") return take_text(json, found.commit);
    return json.skip();
  });
  if (!is_read || !json.finish() || !is_commit(found.commit)) return unreadable("revision", json);
  if (!found.repository.empty() && !hub_name("hf://datasets/" + found.repository)) found.repository.clear();
  return found;
}

std::optional<std::int64_t> expiry_of_url(std::string_view url) {
  constexpr std::uint64_t kLatest = std::uint64_t{1} << 40U;
  if (const auto expires = parameter(url, "Expires"))
    if (const auto seconds = parse_size(*expires); seconds && *seconds <= kLatest)
      return static_cast<std::int64_t>(*seconds);
  const auto date = parameter(url, "X-Amz-Date"), lifetime = parameter(url, "X-Amz-Expires");
  if (!date || !lifetime) return {};
  const auto begin = seconds_of_stamp(*date);
  const auto seconds = parse_size(*lifetime);
  if (!begin || !seconds || *seconds > kLatest) return {};
  return *begin + static_cast<std::int64_t>(*seconds);
}

}  // namespace feedline::storage
