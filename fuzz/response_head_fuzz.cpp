// SPDX-License-Identifier: Apache-2.0

// Any bytes as the lines of a response's head: the parsed values are consistent, whatever the server sends.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "storage/http/response_head.h"

using namespace feedline;
using storage::ContentRange;
using storage::ResponseHead;

namespace {

constexpr std::uint64_t kMost = ~std::uint64_t{0} >> 1;
constexpr std::int64_t kNow = 1'800'000'000;
constexpr std::size_t kMaxRetained = 1024, kMaxUrl = 16 * 1024;

std::string text_of(const ContentRange& range) {
  const std::string span = std::to_string(range.first) + "-" + std::to_string(range.last);
  return "bytes " + (range.has_range ? span : "*") + "/" + (range.total ? std::to_string(*range.total) : "*");
}

void check_range(const ContentRange& range) {
  FEEDLINE_CHECK(range.has_range || range.total);
  FEEDLINE_CHECK(!range.has_range || (range.first <= range.last && range.last <= kMost));
  FEEDLINE_CHECK(!range.has_range || !range.total || range.last < *range.total);
  FEEDLINE_CHECK(storage::parse_content_range(text_of(range)) == range);
}

void check_head(const ResponseHead& head) {
  FEEDLINE_CHECK(head.status >= 0 && head.status < 1000);
  FEEDLINE_CHECK(!head.content_length || *head.content_length <= kMost);
  if (head.content_range) check_range(*head.content_range);
  FEEDLINE_CHECK(!head.content_range || !head.has_bad_range);
  FEEDLINE_CHECK(!head.retry_after || (head.retry_after->count() >= 0 && head.retry_after->count() <= 1'000'000));
  for (const std::string* value :
       {&head.etag, &head.request_id, &head.bucket_region, &head.error_code, &head.error_message})
    FEEDLINE_CHECK(value->size() <= kMaxRetained);
  FEEDLINE_CHECK(head.location.size() <= kMaxUrl && head.next_page.size() <= kMaxUrl);
  const auto bytes = head.object_bytes();
  const auto version = head.version();
  FEEDLINE_CHECK(bytes.has_value() == version.has_value());
  FEEDLINE_CHECK(!version || version->bytes == *bytes);
  FEEDLINE_CHECK(!version || head.etag.empty() || version->tag != 0);
  FEEDLINE_CHECK(head.strong_etag().empty() || head.strong_etag() == head.etag);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  std::string_view text(reinterpret_cast<const char*>(data), bytes);
  ResponseHead head;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    // an allocation of exactly this size, so that the address sanitizer detects reads beyond it
    const std::string line(text.substr(0, end));
    head.add(line, kNow);
    check_head(head);
    if (const auto range = storage::parse_content_range(line)) check_range(*range);
    FEEDLINE_CHECK(storage::next_in_links(line).size() <= line.size());
    if (const auto seconds = storage::exhausted_until(line)) FEEDLINE_CHECK(*seconds <= kMost);
    if (const auto size = storage::parse_size(line)) FEEDLINE_CHECK(std::to_string(*size).size() <= line.size());
    text.remove_prefix(end);
  }
  return 0;
}
