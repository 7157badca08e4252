// SPDX-License-Identifier: Apache-2.0
// Verification of whole objects against the server's checksums: a match is accepted, a mismatch is read once more and
// is then an error; without verification, checksums are neither requested nor compared.
#include <gtest/gtest.h>

#include <cerrno>

#include "storage/fetch.h"
#include "storage/http/http_server_fixture.h"
#include "storage/http/remote_storage.h"
#include "storage/s3/s3_storage.h"
#include "storage/storage_contract.h"

namespace feedline::storage {
namespace {

using namespace std::chrono_literals;

// Checksums of "123456789".
const std::string kContent = "123456789";
const std::vector<std::string> kRightSums{
    "x-amz-checksum-crc32c: 4waSgw==", "X-Amz-Checksum-Crc32: y/Q5Jg==", "x-amz-checksum-crc64nvme: rosUhgp5mIg=",
    "x-amz-checksum-sha256: FeKw08M4keuw8e9gnsQZQgwg4yDOlMZfvIwzEkSOsiU=",
    "x-goog-hash: md5=JfnnlDI7RTiF9RgfG2JNCw==,crc32c=4waSgw=="};

HttpLimits quick_limits() {
  HttpLimits limits;
  limits.first_pause = 1ms;
  limits.longest_pause = 5ms;
  limits.tries = 3;
  return limits;
}

ServedAnswer with(ServedAnswer answer, const std::string& header) {
  answer.headers.push_back(header);
  return answer;
}

std::shared_ptr<const Storage> comparing() { return HttpStorage(quick_limits()).reading({.compares_sums = true}); }

Result<std::string> read_whole(const Storage& storage, const std::string& name) {
  memory::ByteBuffer buffer;
  FEEDLINE_TRY(const auto bytes, storage.read_all(name, buffer, memory::kLeastSampleBytes));
  return text_of(bytes);
}

TEST(Checksums, ThatFitAreTakenOfAllKinds) {
  for (const std::string& sum : kRightSums) {
    HttpServer server([&](const ServedRequest& request) { return with(serve(request, kContent, "\"e\""), sum); });
    const auto storage = comparing();
    const auto got = read_whole(*storage, server.url("/x"));
    ASSERT_TRUE(got) << sum << ": " << got.error().message();
    EXPECT_EQ(*got, kContent);
    EXPECT_EQ(server.requests().size(), 1u) << sum;
    EXPECT_NE(storage->summary().find("1 whole objects compared"), std::string::npos) << storage->summary();
  }
}

TEST(Checksums, ThatDifferAreAnErrorOfBothSumsAfterASecondRead) {
  for (const std::string& sum : kRightSums) {
    std::string damaged = kContent;
    damaged[3] = '5';
    HttpServer server([&](const ServedRequest& request) { return with(serve(request, damaged, "\"e\""), sum); });
    const auto got = read_whole(*comparing(), server.url("/x"));
    ASSERT_FALSE(got) << sum;
    EXPECT_EQ(got.error().code, ErrorCode::kStorage);
    EXPECT_EQ(server.requests().size(), 2u) << sum;
    for (const std::string& part : {std::string("the server lists"), std::string("verify=None"), server.url("/x")})
      EXPECT_NE(got.error().message().find(part), std::string::npos) << got.error().message();
  }
}

TEST(Checksums, OfBothSidesAreNamed) {
  HttpServer server([&](const ServedRequest& request) {
    return with(serve(request, "123456780", "\"e\""), "x-goog-hash: crc32c=4waSgw==");
  });
  const auto got = read_whole(*comparing(), server.url("/x"));
  ASSERT_FALSE(got);
  const auto read = sum_of(SumKind::kCrc32c, std::as_bytes(std::span(std::string_view("123456780"))));
  EXPECT_NE(got.error().message().find("crc32c e3069283"), std::string::npos) << got.error().message();
  EXPECT_NE(got.error().message().find(described(read)), std::string::npos) << got.error().message();
}

TEST(Checksums, DamageUnderWayIsReadAgain) {
  for (const bool by_queue : {false, true}) {
    HttpServer server([&](const ServedRequest& request) {
      return with(serve(request, request.number == 0 ? "12345x789" : kContent, "\"e\""), kRightSums[0]);
    });
    const auto storage = comparing();
    if (by_queue) {
      const auto queue = make_fetch_queue(storage, QueueKind::kBest);
      Fetch fetch;
      fetch.piece.path = server.url("/x");
      queue->start(fetch);
      ASSERT_EQ(queue->finished(FetchQueue::Clock::now() + 200s), &fetch);
      ASSERT_TRUE(fetch.bytes) << fetch.bytes.error().message();
      EXPECT_EQ(text_of(*fetch.bytes), kContent);
    } else {
      const auto got = read_whole(*storage, server.url("/x"));
      ASSERT_TRUE(got) << got.error().message();
      EXPECT_EQ(*got, kContent);
    }
    EXPECT_EQ(server.requests().size(), 2u);
    EXPECT_EQ(server.requests()[1].header("if-match"), "\"e\"");
    EXPECT_EQ(server.requests()[1].header("range"), "") << "and all of it";
  }
}

TEST(Checksums, OfAnObjectInTwoAnswersAreOfBoth) {
  HttpServer server([&](const ServedRequest& request) {
    ServedAnswer answer = with(serve(request, kContent, "\"e\""), kRightSums[0]);
    if (request.number == 0) answer.breaks_after = 4;
    return answer;
  });
  const auto got = read_whole(*comparing(), server.url("/x"));
  ASSERT_TRUE(got) << got.error().message();
  EXPECT_EQ(*got, kContent);
  EXPECT_EQ(server.requests()[1].header("range"), "bytes=4-8");
}

TEST(Checksums, OfAChunkedBodyAreCompared) {
  HttpServer server([&](const ServedRequest&) {
    return ServedAnswer{.headers = {},
                        .body = {},
                        .length = {},
                        .raw =
                            "HTTP/1.1 200 OK\r\nx-goog-hash: crc32c=4waSgw==\r\nTransfer-Encoding: "
                            "chunked\r\n\r\n9\r\n12345678x\r\n0\r\n\r\n"};
  });
  EXPECT_FALSE(read_whole(*comparing(), server.url("/x")));
  EXPECT_EQ(server.requests().size(), 2u);
}

TEST(Checksums, OfPartsOrOfOtherBytesAreNone) {
  for (const std::string sum :
       {"x-amz-checksum-crc32c: AAAAAA==-3", "x-goog-hash: crc32c=nonsense", "x-goog-hash: md5=x"}) {
    HttpServer server([&](const ServedRequest& request) { return with(serve(request, kContent, "\"e\""), sum); });
    const auto storage = comparing();
    EXPECT_TRUE(read_whole(*storage, server.url("/x"))) << sum;
    EXPECT_NE(storage->summary().find("1 had none"), std::string::npos) << storage->summary();
  }
  // what Google unpacks on the way is not what it has the sum of
  HttpServer server([&](const ServedRequest& request) {
    return with(with(serve(request, kContent, "\"e\""), "x-goog-hash: crc32c=AAAAAA=="),
                "x-goog-stored-content-encoding: gzip");
  });
  EXPECT_TRUE(read_whole(*comparing(), server.url("/x")));
}

TEST(Checksums, AreNobodysBusinessByDefault) {
  HttpServer server([&](const ServedRequest& request) {
    return with(serve(request, kContent, "\"e\""), "x-amz-checksum-crc32c: AAAAAA==");
  });
  const HttpStorage storage(quick_limits());
  EXPECT_TRUE(read_whole(storage, server.url("/x")));
  EXPECT_EQ(server.requests()[0].header("x-amz-checksum-mode"), "");
  EXPECT_FALSE(*storage.known_sum(server.url("/x"), {}));
  EXPECT_EQ(server.requests().size(), 1u);
  EXPECT_EQ(storage.summary(), "");
}

TEST(Checksums, AreAskedForByTheHeadAlone) {
  HttpServer server([&](const ServedRequest& request) {
    return with(serve(request, kContent, "\"e\""), "x-amz-checksum-crc32c: 4waSgw==");
  });
  const auto storage = comparing();
  const auto version = storage->stat(server.url("/x"));
  ASSERT_TRUE(version);
  const auto sum = storage->known_sum(server.url("/x"), *version);
  ASSERT_TRUE(sum) << sum.error().message();
  EXPECT_EQ(described(**sum), "crc32c e3069283");
  EXPECT_EQ(server.requests().back().method, "HEAD");
  // of another version it is no sum
  Version other = *version;
  ++other.tag;
  const auto changed = storage->known_sum(server.url("/x"), other);
  ASSERT_FALSE(changed);
  EXPECT_NE(changed.error().message().find("changed"), std::string::npos) << changed.error().message();
}

TEST(Checksums, OfAUrlThatRefusesHeadAreNone) {
  for (const int status : {403, 405, 501}) {
    HttpServer server([&](const ServedRequest& request) {
      return request.method == "HEAD" ? ServedAnswer{.status = status} : serve(request, kContent, "\"e\"");
    });
    const auto storage = comparing();
    const auto version = storage->stat(server.url("/x"));
    const auto sum = storage->known_sum(server.url("/x"), *version);
    ASSERT_TRUE(sum) << sum.error().message();
    EXPECT_FALSE(*sum);
  }
}

TEST(Checksums, AreAskedOfS3AndSigned) {
  int found = 0;
  HttpServer server([&](const ServedRequest& request) {
    if (request.method == "HEAD" && request.header("x-amz-security-token") == "token-1")
      return ServedAnswer{.status = 400};  // and no word why
    return with(serve(request, kContent, "\"e\""), "x-amz-checksum-crc64nvme: rosUhgp5mIg=");
  });
  const auto site =
      std::make_shared<S3Site>(S3Settings{.endpoint = "http://" + server.host(), .path_style = true}, [&] {
        return Result<S3Keys>(S3Keys{"ID", "s", "token-" + std::to_string(++found), 0});
      });
  const auto storage = S3Storage(site, quick_limits()).reading({.compares_sums = true});
  EXPECT_TRUE(read_whole(*storage, "s3://bucket/x"));
  EXPECT_EQ(server.requests()[0].header("x-amz-checksum-mode"), "ENABLED");
  EXPECT_NE(server.requests()[0].header("authorization").find("x-amz-checksum-mode"), std::string::npos);
  const auto version = storage->stat("s3://bucket/x");
  const auto sum = storage->known_sum("s3://bucket/x", *version);
  ASSERT_TRUE(sum) << sum.error().message();
  EXPECT_EQ(described(**sum), "crc64nvme ae8b14860a799888");
  EXPECT_EQ(found, 2) << "expired keys are found again";
  EXPECT_EQ(server.requests().back().header("x-amz-checksum-mode"), "ENABLED");
}

}  // namespace
}  // namespace feedline::storage
