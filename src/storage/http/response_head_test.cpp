// SPDX-License-Identifier: Apache-2.0
#include "storage/http/response_head.h"

#include <gtest/gtest.h>

namespace feedline::storage {
namespace {

TEST(ResponseHead, AContentRangeIsExactOrNone) {
  EXPECT_EQ(parse_content_range("bytes 0-499/1234"), (ContentRange{true, 0, 499, 1234}));
  EXPECT_EQ(parse_content_range("Bytes 7-7/8"), (ContentRange{true, 7, 7, 8}));
  EXPECT_EQ(parse_content_range("bytes 0-9/*"), (ContentRange{true, 0, 9, std::nullopt}));
  EXPECT_EQ(parse_content_range("bytes */0"), (ContentRange{false, 0, 0, 0}));
  for (const char* text :
       {"", "bytes", "bytes 0-499", "bytes=0-4/9", "bytes 5-4/9", "bytes 0-9/9", "bytes -4/9", "bytes 0-/9",
        "bytes */*", "bytes 0-4/-9", "bytes 0x1-4/9", "items 0-4/9", "bytes 0-4/9 ,", "bytes 0-99999999999999999999/*",
        "bytes 0-9223372036854775808/*", "bytes 1-2-3/9", "bytes +1-2/9"})
    EXPECT_FALSE(parse_content_range(text)) << text;
}

TEST(ResponseHead, ADateIsSecondsOrNone) {
  EXPECT_EQ(parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT"), 784'111'777);
  EXPECT_EQ(parse_http_date("Thu, 01 Jan 1970 00:00:00 GMT"), 0);
  EXPECT_EQ(parse_http_date("Thu, 29 Feb 2024 23:59:60 GMT"), 1'709'251'200);
  for (const char* text :
       {"", "Sun, 06 Nov 1994 08:49:37", "Sun, 31 Feb 1994 08:49:37 GMT", "784111777", "Sun, 06 Now 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 24:49:37 GMT", "Sun, 06-Nov-94 08:49:37 GMT"})
    EXPECT_FALSE(parse_http_date(text)) << text;
}

TEST(ResponseHead, TellsVersionsApart) {
  ResponseHead head;
  head.add("HTTP/1.1 206 Partial Content\r\n", 0);
  head.add("content-RANGE: bytes 0-4/1000\r\n", 0);
  head.add("Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n", 0);
  EXPECT_EQ(head.version(), (Version{1000, 784'111'777'000'000'000, 0}));
  EXPECT_EQ(head.strong_etag(), "");
  head.add("ETag: \"abc\"\r\n", 0);
  const Version tagged = *head.version();
  EXPECT_EQ(tagged.bytes, 1000u);
  EXPECT_NE(tagged.tag, 0u);
  EXPECT_EQ(head.strong_etag(), "\"abc\"");
  head.add("ETag: \"abd\"\r\n", 0);
  EXPECT_NE(*head.version(), tagged);
  head.add("ETag: W/\"abc\"\r\n", 0);
  EXPECT_EQ(head.strong_etag(), "") << "If-Match takes no weak one";
  EXPECT_NE(*head.version(), tagged);
  EXPECT_TRUE(is_strong(tagged));
  EXPECT_FALSE(is_strong(*head.version()));
  EXPECT_FALSE(is_strong({1000, 784'111'777'000'000'000, 0}));
}

TEST(ResponseHead, ATimeThatNanosecondsDoNotHoldIsNone) {
  for (const char* const year : {"0001", "0997", "1683", "2256", "9999"}) {
    ResponseHead head;
    head.add("HTTP/1.1 200 OK\r\n", 0);
    head.add("Content-Length: 5\r\n", 0);
    head.add("Last-Modified: Sun, 06 Nov " + std::string(year) + " 08:49:37 GMT\r\n", 0);
    ASSERT_TRUE(head.last_modified) << year;
    EXPECT_EQ(head.version(), (Version{5, 0, 0})) << year;
  }
}

TEST(ResponseHead, TheLastAnswerCounts) {
  ResponseHead head;
  head.add("HTTP/1.1 302 Found\r\n", 0);
  head.add("ETag: \"moved\"\r\n", 0);
  head.add("Content-Length: 5\r\n", 0);
  head.add("\r\n", 0);
  head.add("HTTP/2 200\r\n", 0);
  head.add("Content-Length: 77\r\n", 0);
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.etag, "");
  EXPECT_EQ(head.object_bytes(), 77u);
  EXPECT_TRUE(head.ends_by_itself);
}

TEST(ResponseHead, WaitsAsTheServerAsks) {
  const auto after = [](const std::string& value) {
    ResponseHead head;
    head.add("Retry-After: " + value, 784'111'777);
    return head.retry_after ? static_cast<int>(head.retry_after->count()) : -1;
  };
  EXPECT_EQ(after("7"), 7);
  EXPECT_EQ(after("Sun, 06 Nov 1994 08:49:42 GMT"), 5);
  EXPECT_EQ(after("Sun, 06 Nov 1994 08:49:30 GMT"), 0);
  EXPECT_EQ(after("soon"), -1);
  EXPECT_EQ(after("-3"), -1);
  EXPECT_EQ(after("99999999999"), 1'000'000);
}

}  // namespace
}  // namespace feedline::storage
