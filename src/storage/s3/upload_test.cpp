// SPDX-License-Identifier: Apache-2.0
// Multipart uploads to servers with correct and faulty responses.
#include "storage/s3/upload.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <mutex>
#include <thread>

#include "base/sha256.h"
#include "storage/http/http_server_fixture.h"
#include "storage/temporary_folder.h"

namespace feedline::storage {
namespace {

using namespace std::chrono_literals;

constexpr UploadLimits kSmallParts{.part_bytes = 1000, .at_once = 3};

// A correct S3 server; responses that a test has injected are sent first.
class Bucket {
 public:
  using Fault = std::function<std::optional<ServedAnswer>(const ServedRequest&)>;
  explicit Bucket(Fault fault = {}) : fault_(std::move(fault)) {}

  S3Remote remote(HttpLimits limits = quick()) {
    const S3Settings settings{.endpoint = "http://" + server_.host(), .region = "eu-west-1", .path_style = true};
    const auto keys = [] { return Result<S3Keys>(S3Keys{"ID", "hunter2", "", 0}); };
    return {std::make_shared<S3Site>(settings, keys), limits, nullptr};
  }
  static HttpLimits quick() {
    HttpLimits limits;
    limits.first_pause = 1ms;
    limits.longest_pause = 5ms;
    limits.tries = 3;
    return limits;
  }
  std::size_t count(const std::string& method, const std::string& part_of_target) const {
    const auto requests = server_.requests();
    return static_cast<std::size_t>(std::ranges::count_if(requests, [&](const ServedRequest& request) {
      return request.method == method && request.target.find(part_of_target) != std::string::npos;
    }));
  }
  std::vector<ServedRequest> requests() const { return server_.requests(); }
  std::string object() const {
    const std::lock_guard lock(mutex_);
    return object_;
  }

 private:
  ServedAnswer answer(const ServedRequest& request) {
    if (request.header("x-amz-content-sha256") != base::hex_of(base::sha256(std::string_view(request.body))))
      return {.status = 400, .body = "<Error><Code>XAmzContentSHA256Mismatch</Code></Error>"};
    if (fault_)
      if (auto made = fault_(request)) return *made;
    const std::lock_guard lock(mutex_);
    const auto number = request.target.find("partNumber=");
    if (request.method == "POST" && request.target.ends_with("?uploads="))
      return {.body = "<InitiateMultipartUploadResult><UploadId>id/1+</UploadId></InitiateMultipartUploadResult>"};
    if (request.method == "PUT" && number != std::string::npos) {
      const int part = std::atoi(request.target.c_str() + number + 11);
      parts_[part] = request.body;
      return {.headers = {"ETag: \"p" + std::to_string(part) + "\""}};
    }
    if (request.method == "PUT") {
      object_ = request.body;
      return {.headers = {"ETag: \"whole\""}};
    }
    if (request.method == "DELETE") return {.status = 204, .says_length = false, .raw = "HTTP/1.1 204 x\r\n\r\n"};
    if (request.method == "GET") return serve(request, object_, "\"made-" + std::to_string(parts_.size()) + "\"");
    std::string expected = "<CompleteMultipartUpload>";
    for (const auto& [part, content] : parts_) {
      expected += "<Part><PartNumber>" + std::to_string(part) + "</PartNumber><ETag>\"p" + std::to_string(part) +
                  "\"</ETag></Part>";
      object_ += content;
    }
    if (request.body != expected + "</CompleteMultipartUpload>") return {.status = 400};
    return {.body = "<?xml version=\"1.0\"?>\n<CompleteMultipartUploadResult><ETag>&quot;made-" +
                    std::to_string(parts_.size()) + "&quot;</ETag></CompleteMultipartUploadResult>"};
  }

  const Fault fault_;
  mutable std::mutex mutex_;
  std::map<int, std::string> parts_;  // guarded by mutex_
  std::string object_;                // guarded by mutex_
  HttpServer server_{[this](const ServedRequest& request) { return answer(request); }};
};

std::string content_of(std::size_t bytes) {
  std::string content;
  for (std::size_t i = 0; i < bytes; ++i) content += static_cast<char>('a' + i * 7 % 26);
  return content;
}

class Upload : public ::testing::Test {
 protected:
  Result<std::string> send(const S3Remote& remote, std::stop_token stop = {}) {
    return upload_file(remote, file_, "s3://bucket/a b.tar", kSmallParts, std::move(stop));
  }
  TemporaryFolder folder_;
  const std::string content_ = content_of(5500);
  const std::string file_ = folder_.write("a.tar", content_);
};

bool is_part(const ServedRequest& request, int number) {
  return request.method == "PUT" &&
         request.target.find("partNumber=" + std::to_string(number) + "&") != std::string::npos;
}
bool is_completion(const ServedRequest& request) {
  return request.method == "POST" && request.target.find("uploadId=") != std::string::npos;
}

TEST_F(Upload, PutsPartsTogether) {
  Bucket bucket;
  const auto etag = send(bucket.remote());
  ASSERT_TRUE(etag) << etag.error().message();
  EXPECT_EQ(*etag, "\"made-6\"");
  EXPECT_EQ(bucket.object(), content_);
  EXPECT_EQ(bucket.count("PUT", "/bucket/a%20b.tar?partNumber="), 6u);
  EXPECT_EQ(bucket.count("PUT", "uploadId=id%2F1%2B"), 6u);
  EXPECT_EQ(bucket.count("DELETE", ""), 0u);
}

TEST_F(Upload, SendsSmallObjectsByOneRequest) {
  Bucket bucket;
  for (const std::string& content : {content_of(1000), content_of(1), std::string()}) {
    const auto etag = upload_file(bucket.remote(), folder_.write("small", content), "s3://bucket/s", kSmallParts);
    ASSERT_TRUE(etag) << etag.error().message();
    EXPECT_EQ(*etag, "\"whole\"");
    EXPECT_EQ(bucket.object(), content);
  }
  EXPECT_EQ(bucket.requests().size(), 3u);
  EXPECT_EQ(bucket.requests()[0].header("content-type"), "");
  EXPECT_EQ(bucket.requests()[0].header("expect"), "");
}

TEST_F(Upload, TriesAPartAgainThatFailsOnce) {
  std::atomic<bool> second_failed = false, fifth_failed = false;  // in any order
  Bucket bucket([&](const ServedRequest& request) -> std::optional<ServedAnswer> {
    if (is_part(request, 2) && !second_failed.exchange(true))
      return ServedAnswer{.status = 503, .headers = {"Retry-After: 0"}};
    if (is_part(request, 5) && !fifth_failed.exchange(true)) return ServedAnswer{.raw = "H"};
    return {};
  });
  const auto etag = send(bucket.remote());
  ASSERT_TRUE(etag) << etag.error().message();
  EXPECT_EQ(bucket.object(), content_);
  EXPECT_EQ(bucket.count("PUT", "partNumber="), 8u);
}

TEST_F(Upload, APartThatIsRefusedAbortsTheUpload) {
  for (const int status : {403, 503}) {
    Bucket bucket([&](const ServedRequest& request) -> std::optional<ServedAnswer> {
      if (!is_part(request, 3)) return {};
      return ServedAnswer{.status = status, .body = "<Error><Code>Reason</Code></Error>"};
    });
    const auto etag = send(bucket.remote());
    ASSERT_FALSE(etag);
    const std::string said = etag.error().message();
    EXPECT_NE(said.find("cannot write part 3 of 6: " + std::to_string(status)), std::string::npos) << said;
    EXPECT_NE(said.find("Reason"), std::string::npos) << said;
    EXPECT_NE(said.find("s3://bucket/a b.tar"), std::string::npos) << said;
    EXPECT_EQ(said.find("hunter2"), std::string::npos);
    EXPECT_EQ(bucket.count("PUT", "partNumber=3&"), status == 403 ? 1u : 3u);
    EXPECT_EQ(bucket.count("DELETE", "uploadId=id%2F1%2B"), 1u);
    EXPECT_EQ(bucket.count("POST", "uploadId="), 0u);
  }
}

TEST_F(Upload, AServerThatAsksForTooLongAWaitIsAnError) {
  Bucket bucket([&](const ServedRequest& request) -> std::optional<ServedAnswer> {
    if (!is_part(request, 1)) return {};
    return ServedAnswer{.status = 503, .headers = {"Retry-After: 100000"}};
  });
  const auto etag = send(bucket.remote());
  ASSERT_FALSE(etag);
  EXPECT_NE(etag.error().message().find("asks to wait 100000 s"), std::string::npos) << etag.error().message();
  EXPECT_EQ(bucket.count("DELETE", "uploadId="), 1u);
}

TEST_F(Upload, ACompletionMayBeAnErrorThatSays200) {
  for (const bool passes : {true, false}) {
    std::atomic<int> asked = 0;
    Bucket bucket([&](const ServedRequest& request) -> std::optional<ServedAnswer> {
      if (!is_completion(request) || (asked++ > 0 && passes)) return {};
      const std::string code = passes ? "InternalError" : "InvalidPart";
      return ServedAnswer{.body = "<?xml version=\"1.0\"?>\n\n<Error><Code>" + code + "</Code></Error>"};
    });
    const auto etag = send(bucket.remote());
    EXPECT_EQ(etag.has_value(), passes);
    EXPECT_EQ(asked.load(), passes ? 2 : 1);
    EXPECT_EQ(bucket.count("DELETE", "uploadId="), passes ? 0u : 1u);
    if (passes) continue;
    EXPECT_NE(etag.error().message().find("cannot complete the upload: 200 OK, InvalidPart"), std::string::npos)
        << etag.error().message();
  }
}

TEST_F(Upload, ACompletionWithoutItsResultIsNoSuccess) {
  Bucket bucket([&](const ServedRequest& request) -> std::optional<ServedAnswer> {
    if (is_completion(request)) return ServedAnswer{};
    return {};
  });
  const auto etag = send(bucket.remote());
  ASSERT_FALSE(etag);
  EXPECT_NE(etag.error().message().find("does not confirm that the object exists"), std::string::npos);
  EXPECT_EQ(bucket.count("DELETE", "uploadId="), 1u);
}

TEST_F(Upload, APartWithoutAnETagIsNoSuccess) {
  Bucket bucket([&](const ServedRequest& request) -> std::optional<ServedAnswer> {
    if (is_part(request, 4)) return ServedAnswer{};
    return {};
  });
  const auto etag = send(bucket.remote());
  ASSERT_FALSE(etag);
  EXPECT_NE(etag.error().message().find("part 4: the response has no ETag"), std::string::npos);
}

// The server has completed the upload, but its first response was lost.
TEST_F(Upload, ACompletionWhoseAnswerWasLostIsLookedFor) {
  for (const bool is_there : {true, false}) {
    std::atomic<int> asked = 0;
    const std::string& content = content_;
    Bucket bucket([&](const ServedRequest& request) -> std::optional<ServedAnswer> {
      if (request.method == "GET")
        return is_there ? serve(request, content, "\"made-6\"") : ServedAnswer{.status = 404};
      if (!is_completion(request)) return {};
      if (asked++ == 0) return ServedAnswer{.raw = "HTTP/1.1 20"};
      return ServedAnswer{.status = 404, .body = "<Error><Code>NoSuchUpload</Code></Error>"};
    });
    const auto etag = send(bucket.remote());
    EXPECT_EQ(etag.has_value(), is_there) << (etag ? "" : etag.error().message());
    if (etag)
      EXPECT_EQ(*etag, "\"made-6\"");
    else
      EXPECT_NE(etag.error().message().find("NoSuchUpload"), std::string::npos) << etag.error().message();
  }
}

TEST_F(Upload, AStopEndsWhatWaitsAndAbortsIt) {
  std::stop_source stop;
  Bucket bucket([&](const ServedRequest& request) -> std::optional<ServedAnswer> {
    if (!is_part(request, 2)) return {};
    stop.request_stop();
    return ServedAnswer{.body = "x", .stalls_after = 0};
  });
  const auto etag = send(bucket.remote(), stop.get_token());
  ASSERT_FALSE(etag);
  EXPECT_EQ(etag.error().code, ErrorCode::kCancelled);
  EXPECT_EQ(bucket.count("DELETE", "uploadId="), 1u);
  EXPECT_EQ(bucket.count("POST", "uploadId="), 0u);
}

TEST_F(Upload, AnAbortThatFailsIsSaidNextToWhatWentWrongFirst) {
  Bucket bucket([&](const ServedRequest& request) -> std::optional<ServedAnswer> {
    if (is_part(request, 1) || request.method == "DELETE") return ServedAnswer{.status = 403};
    return {};
  });
  const auto etag = send(bucket.remote());
  ASSERT_FALSE(etag);
  const std::string said = etag.error().message();
  EXPECT_LT(said.find("cannot write part 1 of 6"), said.find("its parts stay")) << said;
}

TEST_F(Upload, ServersThatStallAreAskedAgain) {
  std::atomic<int> stalled = 0;
  Bucket bucket([&](const ServedRequest& request) -> std::optional<ServedAnswer> {
    if (!is_part(request, 6) || stalled++ > 0) return {};
    return ServedAnswer{.body = "x", .stalls_after = 0};
  });
  HttpLimits limits = Bucket::quick();
  limits.stall = 300ms;
  const auto etag = send(bucket.remote(limits));
  ASSERT_TRUE(etag) << etag.error().message();
  EXPECT_EQ(bucket.object(), content_);
  EXPECT_EQ(bucket.count("PUT", "partNumber=6&"), 2u);
}

TEST_F(Upload, UnfinishedOnesAreFoundPageByPage) {
  Bucket bucket([&](const ServedRequest& request) -> std::optional<ServedAnswer> {
    if (request.method != "GET") return {};
    const bool is_second = request.target.find("key-marker=p%2Fa%20b") != std::string::npos;
    return ServedAnswer{.body =
                            std::string("<ListMultipartUploadsResult><EncodingType>url</EncodingType><Upload><Key>p/") +
                            (is_second ? "c" : "a+b") + "</Key><UploadId>" + (is_second ? "2" : "1") +
                            "</UploadId></Upload><IsTruncated>" + (is_second ? "false" : "true") +
                            "</IsTruncated><NextKeyMarker>p/a+b</NextKeyMarker><NextUploadIdMarker>1"
                            "</NextUploadIdMarker></ListMultipartUploadsResult>"};
  });
  const auto uploads = unfinished_uploads(bucket.remote(), "s3://bucket/p/");
  ASSERT_TRUE(uploads) << uploads.error().message();
  ASSERT_EQ(uploads->size(), 2u);
  EXPECT_EQ((*uploads)[0].key, "p/a b");
  EXPECT_EQ((*uploads)[1].id, "2");
}

TEST(SendingToS3, EncryptedBodiesAreNotHashed) {
  const S3Site site({.region = "eu-west-1"}, [] { return Result<S3Keys>(S3Keys{"ID", "hunter2", "", 0}); });
  EXPECT_TRUE(site.is_encrypted());
  ASSERT_TRUE(site.prepare());
  const std::string body = "body";
  const auto call = site.call("s3://bucket/x", S3Order{.method = "PUT",
                                                       .query = "partNumber=1",
                                                       .body = std::as_bytes(std::span<const char>(body)),
                                                       .payload = std::string(kUnsignedPayload)});
  ASSERT_TRUE(call);
  EXPECT_EQ(call->url, "https://bucket.s3.eu-west-1.amazonaws.com/x?partNumber=1");
  EXPECT_EQ(call->method, "PUT");
  EXPECT_TRUE(std::ranges::find(call->headers, "x-amz-content-sha256: UNSIGNED-PAYLOAD") != call->headers.end());
}

}  // namespace
}  // namespace feedline::storage
