// SPDX-License-Identifier: Apache-2.0
#include "storage/http/response_head.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <utility>

#include "base/random.h"

namespace feedline::storage {
namespace {

constexpr std::size_t kLongestValue = 1024;     // of a value that is stored as text
constexpr std::size_t kLongestUrl = 16 * 1024;  // signatures are long

std::string_view trimmed(std::string_view text) {
  const auto is_space = [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; };
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

bool is_same_name(std::string_view text, std::string_view lower) {
  return std::ranges::equal(
      text, lower, [](char a, char b) { return (a >= 'A' && a <= 'Z' ? static_cast<char>(a - 'A' + 'a') : a) == b; });
}

bool has_word(std::string_view text, std::string_view lower) {
  for (std::size_t i = 0; i + lower.size() <= text.size(); ++i)
    if (is_same_name(text.substr(i, lower.size()), lower)) return true;
  return false;
}

std::string shortened(std::string_view value) { return std::string(value.substr(0, kLongestValue)); }
std::string whole_url(std::string_view value) { return std::string(value.size() > kLongestUrl ? "" : value); }

// Removes and returns the text before the next `mark` that is not inside quotes or angle brackets.
std::string_view take_until(std::string_view& text, char mark) {
  char closing = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (closing != 0) {
      if (c == closing) closing = 0;
    } else if (c == mark) {
      const std::string_view found = text.substr(0, i);
      text.remove_prefix(i + 1);
      return trimmed(found);
    } else if (c == '"' || c == '<') {
      closing = c == '<' ? '>' : c;
    }
  }
  return trimmed(std::exchange(text, std::string_view()));
}

// Converts a Gregorian date to days since 1970.
std::optional<std::int64_t> days_of(std::int64_t year, unsigned month, unsigned day) {
  const std::chrono::year_month_day date{std::chrono::year(static_cast<int>(year)), std::chrono::month(month),
                                         std::chrono::day(day)};
  if (!date.ok()) return {};
  return std::chrono::sys_days(date).time_since_epoch().count();
}

}  // namespace

std::uint64_t tag_of(std::string_view etag) {
  std::uint64_t digest = etag.size() + 1;
  for (const char c : etag) digest = base::mix64(digest * 257 + static_cast<unsigned char>(c));
  if (etag.starts_with("W/")) return (digest & ~kWeakTagBits) | kWeakTag;
  return digest == 0 ? 1 : digest;
}

std::optional<std::uint64_t> parse_size(std::string_view text) {
  constexpr std::uint64_t kMost = ~std::uint64_t{0} >> 1;
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size() || value > kMost) return {};
  return value;
}

std::optional<ContentRange> parse_content_range(std::string_view text) {
  constexpr std::string_view kUnit = "bytes";
  if (text.size() <= kUnit.size() || !is_same_name(text.substr(0, kUnit.size()), kUnit)) return {};
  if (text[kUnit.size()] != ' ') return {};
  text = trimmed(text.substr(kUnit.size()));
  const std::size_t slash = text.find('/');
  if (slash == text.npos) return {};
  ContentRange range;
  const std::string_view total = text.substr(slash + 1), span = text.substr(0, slash);
  if (total != "*") {
    range.total = parse_size(total);
    if (!range.total) return {};
  }
  if (span == "*") return range.total ? std::optional(range) : std::nullopt;
  const std::size_t dash = span.find('-');
  if (dash == span.npos) return {};
  const auto first = parse_size(span.substr(0, dash)), last = parse_size(span.substr(dash + 1));
  if (!first || !last || *first > *last || (range.total && *last >= *range.total)) return {};
  range.has_range = true;
  range.first = *first;
  range.last = *last;
  return range;
}

std::optional<std::int64_t> parse_http_date(std::string_view text) {
  // "Sun, 06 Nov 1994 08:49:37 GMT"
  static constexpr std::array<std::string_view, 12> kMonths{"jan", "feb", "mar", "apr", "may", "jun",
                                                            "jul", "aug", "sep", "oct", "nov", "dec"};
  constexpr std::size_t kLength = 29;
  if (text.size() != kLength || text.substr(3, 2) != ", " || text.substr(25) != " GMT") return {};
  const auto number = [&](std::size_t at, std::size_t digits) { return parse_size(text.substr(at, digits)); };
  const auto day = number(5, 2), year = number(12, 4), hour = number(17, 2), minute = number(20, 2),
             second = number(23, 2);
  const auto month =
      std::ranges::find_if(kMonths, [&](std::string_view name) { return is_same_name(text.substr(8, 3), name); });
  if (!day || !year || !hour || !minute || !second || month == kMonths.end()) return {};
  if (*hour > 23 || *minute > 59 || *second > 60 || text[19] != ':' || text[22] != ':') return {};
  const auto days = days_of(static_cast<std::int64_t>(*year), static_cast<unsigned>(month - kMonths.begin()) + 1,
                            static_cast<unsigned>(*day));
  if (!days) return {};
  return *days * 86'400 + static_cast<std::int64_t>(*hour * 3600 + *minute * 60 + *second);
}

std::string_view next_in_links(std::string_view text) {
  while (!text.empty()) {
    std::string_view link = take_until(text, ',');
    const std::string_view target = take_until(link, ';');
    if (target.size() < 2 || target.front() != '<' || target.back() != '>') continue;
    while (!link.empty()) {
      const std::string_view parameter = take_until(link, ';');
      if (is_same_name(parameter, "rel=\"next\"") || is_same_name(parameter, "rel=next"))
        return target.substr(1, target.size() - 2);
    }
  }
  return {};
}

std::optional<std::uint64_t> exhausted_until(std::string_view text) {
  while (!text.empty()) {
    std::string_view limit = take_until(text, ',');
    take_until(limit, ';');  // its name
    std::optional<std::uint64_t> rest, seconds;
    while (!limit.empty()) {
      const std::string_view parameter = take_until(limit, ';');
      if (parameter.starts_with("r=")) rest = parse_size(parameter.substr(2));
      if (parameter.starts_with("t=")) seconds = parse_size(parameter.substr(2));
    }
    if (rest == 0 && seconds) return seconds;
  }
  return {};
}

// For multipart objects, the checksum is a checksum of checksums; it ends with "-3" or similar, and is ignored.
void ResponseHead::add_sum(SumKind kind, std::string_view base64) {
  auto found = sum_of_base64(kind, base64);
  if (found && (!sum || kind < sum->kind)) sum = std::move(found);
}

void ResponseHead::add(std::string_view line, std::int64_t now) {
  line = trimmed(line);
  is_whole = line.empty();
  if (line.starts_with("HTTP/")) {
    *this = {};
    const std::size_t space = std::min(line.find(' '), line.size());
    const auto code = parse_size(line.substr(std::min(space + 1, line.size()), 3));
    status = code ? static_cast<int>(*code) : 0;
    ends_by_itself = !line.starts_with("HTTP/1") && !line.starts_with("HTTP/0");
    return;
  }
  const std::size_t colon = line.find(':');
  if (colon == line.npos) return;
  const std::string_view name = line.substr(0, colon), value = trimmed(line.substr(colon + 1));
  if (is_same_name(name, "content-length")) content_length = parse_size(value);
  if (is_same_name(name, "content-range")) {
    content_range = parse_content_range(value);
    has_bad_range = !content_range;
  }
  if (is_same_name(name, "transfer-encoding")) ends_by_itself = ends_by_itself || has_word(value, "chunked");
  if (is_same_name(name, "content-type")) is_multipart = has_word(value, "multipart/byteranges");
  if (is_same_name(name, "etag")) etag = shortened(value);
  if (is_same_name(name, "last-modified")) last_modified = parse_http_date(value);
  if (is_same_name(name, "x-amz-request-id") || is_same_name(name, "x-guploader-uploadid") ||
      (is_same_name(name, "x-request-id") && request_id.empty()))
    request_id = shortened(value);
  if (is_same_name(name, "x-amz-bucket-region")) bucket_region = shortened(value);
  if (is_same_name(name, "location")) location = whole_url(value);
  if (is_same_name(name, "link") && next_page.empty()) next_page = whole_url(next_in_links(value));
  if (is_same_name(name, "x-error-code")) error_code = shortened(value);
  if (is_same_name(name, "x-error-message")) error_message = shortened(value);
  if (is_same_name(name, "x-amz-checksum-crc32c")) add_sum(SumKind::kCrc32c, value);
  if (is_same_name(name, "x-amz-checksum-crc64nvme")) add_sum(SumKind::kCrc64Nvme, value);
  if (is_same_name(name, "x-amz-checksum-crc32")) add_sum(SumKind::kCrc32, value);
  if (is_same_name(name, "x-amz-checksum-sha256")) add_sum(SumKind::kSha256, value);
  if (is_same_name(name, "x-goog-hash"))  // "crc32c=n03x6A==,md5=Ojk9c3dhfxgoKVVHYwFbHQ=="
    for (std::string_view rest = value; !rest.empty();) {
      const std::string_view one = trimmed(rest.substr(0, rest.find(',')));
      rest.remove_prefix(std::min(rest.find(',') == rest.npos ? rest.size() : rest.find(',') + 1, rest.size()));
      if (one.starts_with("crc32c=")) add_sum(SumKind::kCrc32c, one.substr(one.find('=') + 1));
    }
  if (is_same_name(name, "x-goog-stored-content-encoding")) is_recoded = !is_same_name(value, "identity");
  constexpr std::int64_t kLongest = 1'000'000;
  if (is_same_name(name, "ratelimit"))
    if (const auto seconds = exhausted_until(value)) {  // a second more, as the time is rounded down
      retry_after = std::chrono::seconds(std::min<std::uint64_t>(*seconds + 1, kLongest));
      is_rate_limited = true;
    }
  if (is_same_name(name, "retry-after") && !is_rate_limited) {
    const auto seconds = parse_size(value);
    const auto date = parse_http_date(value);
    if (seconds || date) {
      const std::int64_t wait =
          seconds ? static_cast<std::int64_t>(std::min<std::uint64_t>(*seconds, kLongest)) : *date - now;
      retry_after = std::chrono::seconds(std::clamp<std::int64_t>(wait, 0, kLongest));
    }
  }
}

std::optional<std::uint64_t> ResponseHead::object_bytes() const {
  if (content_range) return content_range->total;
  if (status == 200) return content_length;
  return {};
}

std::optional<Version> ResponseHead::version() const {
  constexpr std::int64_t kNsPerSecond = 1'000'000'000;
  constexpr std::int64_t kMostSeconds = 9'000'000'000;  // the range of 64-bit nanoseconds around 1970
  const auto bytes = object_bytes();
  if (!bytes) return {};
  if (!etag.empty()) return Version{*bytes, 0, tag_of(etag)};
  const std::int64_t seconds = last_modified.value_or(0);
  return Version{*bytes, std::abs(seconds) < kMostSeconds ? seconds * kNsPerSecond : 0, 0};
}

std::string_view ResponseHead::strong_etag() const {
  const bool is_strong = etag.size() > 2 && etag.front() == '"' && etag.back() == '"';
  return is_strong ? std::string_view(etag) : std::string_view();
}

}  // namespace feedline::storage
