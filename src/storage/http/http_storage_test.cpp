// SPDX-License-Identifier: Apache-2.0
// Server faults during reads: the result is the requested bytes or an error, never other bytes.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <atomic>
#include <cerrno>
#include <thread>

#include "storage/fetch.h"
#include "storage/http/curl_library.h"
#include "storage/http/http_server_fixture.h"
#include "storage/http/remote_storage.h"
#include "storage/orphaned_buffers.h"
#include "storage/registry.h"
#include "storage/storage_contract.h"

namespace feedline::storage {
namespace {

using namespace std::chrono_literals;

const std::string kETag = "\"first\"";
const std::string kContent = recognisable_bytes(100'000);

HttpLimits quick_limits() {
  HttpLimits limits;
  limits.first_pause = 1ms;
  limits.longest_pause = 5ms;
  limits.tries = 4;
  return limits;
}

ServedAnswer right(const ServedRequest& request) { return serve(request, kContent, kETag); }

// Makes one read from a server that responds with `answer`, which receives the number of the attempt.
struct Outcome {
  std::string text;  // "(error)" for an error
  Error error;
  std::vector<ServedRequest> requests;
};
using Answer = std::function<ServedAnswer(const ServedRequest&, std::uint64_t)>;

class HttpStorageTest : public testing::Test {
 protected:
  static constexpr std::uint64_t kOffset = 1000;
  static constexpr std::size_t kBytes = 50'000;
  static std::string wanted() { return kContent.substr(kOffset, kBytes); }

  Outcome read(const Answer& answer, HttpLimits limits = quick_limits()) {
    HttpServer server([&](const ServedRequest& request) {
      return request.number == 0 ? right(request) : answer(request, request.number - 1);
    });
    const HttpStorage storage(limits);
    const auto reader = storage.open(server.url("/x.tar"), Access::kRead);
    if (!reader) return {"(not opened)", reader.error(), server.requests()};
    std::vector<std::byte> room(kBytes);
    const auto got = (*reader)->read_at(kOffset, room);
    Outcome outcome{got ? text_of(std::span(room).first(*got)) : "(error)", got ? Error{} : got.error(),
                    server.requests()};
    outcome.requests.erase(outcome.requests.begin());
    return outcome;
  }
  // Reads the whole object with one request, and further ones if necessary.
  Outcome read_whole(const Answer& answer, std::uint64_t most = memory::kLeastSampleBytes,
                     HttpLimits limits = quick_limits()) {
    HttpServer server([&](const ServedRequest& request) { return answer(request, request.number); });
    const HttpStorage storage(limits);
    memory::ByteBuffer buffer;
    const auto got = storage.read_all(server.url("/x.jpg"), buffer, most);
    return {got ? text_of(*got) : "(error)", got ? Error{} : got.error(), server.requests()};
  }
  // Expects that a read succeeds if the first response is invalid and later ones are valid.
  void expect_recovery(const std::function<ServedAnswer(const ServedRequest&)>& wrong, const std::string& what,
                       HttpLimits limits = quick_limits()) {
    const Outcome outcome = read(
        [&](const ServedRequest& request, std::uint64_t tries) { return tries == 0 ? wrong(request) : right(request); },
        limits);
    EXPECT_TRUE(outcome.text == wanted()) << what << ": " << outcome.error.message();
    EXPECT_GE(outcome.requests.size(), 2u) << what;
  }
  // Expects that the error contains the object and the reason if every response is invalid.
  Error expect_error(const Answer& wrong, const std::string& why, HttpLimits limits = quick_limits()) {
    const Outcome outcome = read(wrong, limits);
    EXPECT_EQ(outcome.text, "(error)") << why;
    EXPECT_EQ(outcome.error.code, ErrorCode::kStorage);
    EXPECT_TRUE(outcome.error.where.shard.starts_with("http://127.0.0.1:")) << outcome.error.message();
    EXPECT_NE(outcome.error.what.find(why), std::string::npos) << outcome.error.what;
    return outcome.error;
  }
};

TEST_F(HttpStorageTest, ReadsAnyRange) {
  HttpServer server(right);
  const HttpStorage storage(quick_limits());
  const auto reader = storage.open(server.url("/x.tar"), Access::kMap);
  ASSERT_TRUE(reader) << reader.error().message();
  EXPECT_EQ((*reader)->version()->bytes, kContent.size());
  EXPECT_EQ(*(*reader)->version(), *storage.stat(server.url("/x.tar")));
  for (const std::size_t offset : {0ul, 1ul, 4095ul, 4096ul, 99'999ul, 100'000ul, 200'000ul})
    for (const std::size_t bytes : {0ul, 1ul, 4096ul, 60'000ul}) {
      std::vector<std::byte> room(bytes);
      const auto got = (*reader)->read_at(offset, room);
      ASSERT_TRUE(got) << got.error().message();
      EXPECT_EQ(text_of(std::span(room).first(*got)), offset < kContent.size() ? kContent.substr(offset, bytes) : "");
    }
  std::vector<std::byte> room(10);
  EXPECT_EQ(*(*reader)->read_at(~std::uint64_t{0}, room), 0u);
  EXPECT_FALSE((*reader)->view(0, 10)->has_value());
}

TEST_F(HttpStorageTest, OpeningIsOneRequestAndItsFirstBytesAreNoneMore) {
  HttpServer server(right);
  const HttpStorage storage(quick_limits());
  const auto reader = storage.open(server.url("/x.tar"), Access::kRead);
  std::vector<std::byte> room(512);
  EXPECT_EQ(*(*reader)->read_at(0, room), 512u);
  EXPECT_EQ(text_of(room), kContent.substr(0, 512));
  EXPECT_EQ(server.requests().size(), 1u);
  const auto known = storage.open_version(server.url("/x.tar"), Access::kRead, *(*reader)->version());
  EXPECT_EQ(server.requests().size(), 1u) << "what is known is not asked for";
  EXPECT_EQ(*(*known)->read_at(99'000, room), 512u);
  EXPECT_EQ(text_of(room), kContent.substr(99'000, 512));
}

TEST_F(HttpStorageTest, EmptyObjectsAreEmpty) {
  for (const bool says_total : {true, false}) {
    HttpServer server([&](const ServedRequest& request) {
      ServedAnswer answer = serve(request, "", kETag);
      if (!says_total)
        std::erase_if(answer.headers, [](const auto& header) { return header.starts_with("Content-R"); });
      return answer;
    });
    const HttpStorage storage(quick_limits());
    const auto reader = storage.open(server.url("/empty"), Access::kRead);
    ASSERT_TRUE(reader) << reader.error().message();
    EXPECT_EQ((*reader)->version()->bytes, 0u);
    memory::ByteBuffer buffer;
    EXPECT_EQ(storage.read_all(server.url("/empty"), buffer, 100)->size(), 0u);
  }
}

TEST_F(HttpStorageTest, ABodyThatBreaksOffIsResumedWhereItBroke) {
  for (const std::size_t cut : {0ul, 1ul, 20'000ul, 49'999ul}) {
    const Outcome outcome = read([&](const ServedRequest& request, std::uint64_t tries) {
      ServedAnswer answer = right(request);
      if (tries == 0) answer.breaks_after = cut;
      return answer;
    });
    EXPECT_TRUE(outcome.text == wanted()) << outcome.error.message();
    ASSERT_EQ(outcome.requests.size(), 2u);
    EXPECT_EQ(outcome.requests[1].range()->first, kOffset + cut);
    EXPECT_EQ(outcome.requests[1].header("if-match"), kETag) << "of the same version";
  }
}

TEST_F(HttpStorageTest, ABodyMayComeInManyPieces) {
  const Outcome outcome = read([&](const ServedRequest& request, std::uint64_t) {
    ServedAnswer answer = right(request);
    answer.breaks_after = 5'000;  // each attempt makes progress: more attempts than are allowed without progress
    return answer;
  });
  EXPECT_TRUE(outcome.text == wanted()) << outcome.error.message();
  EXPECT_EQ(outcome.requests.size(), 10u);
}

TEST_F(HttpStorageTest, RefusalsForNowAreTriedAgain) {
  for (const int status : {408, 429, 500, 502, 503, 504})
    expect_recovery([&](const ServedRequest&) { return ServedAnswer{.status = status, .body = "later"}; },
                    std::to_string(status));
  const Error error = expect_error(
      [](const ServedRequest&, std::uint64_t) {
        return ServedAnswer{.status = 503, .headers = {"x-amz-request-id: R17"}, .body = "down"};
      },
      "503 Service Unavailable");
  for (const char* part : {"bytes 1000-50999", "request R17", "tried 4 times"})
    EXPECT_NE(error.what.find(part), std::string::npos) << error.what;
}

TEST_F(HttpStorageTest, WaitsAsLongAsTheServerAsksAndNotForEver) {
  expect_recovery([](const ServedRequest&) { return ServedAnswer{.status = 429, .headers = {"Retry-After: 0"}}; },
                  "0 s");
  HttpLimits limits = quick_limits();
  limits.longest_retry_after = 5s;
  expect_error(
      [](const ServedRequest&, std::uint64_t) { return ServedAnswer{.status = 503, .headers = {"Retry-After: 6"}}; },
      "asks to wait 6 s", limits);
}

TEST_F(HttpStorageTest, RefusalsForGoodAreErrorsAtOnce) {
  struct Case {
    int status, system_errno;
  };
  for (const Case& one :
       {Case{404, ENOENT}, Case{410, ENOENT}, Case{403, EACCES}, Case{401, EACCES}, Case{400, EREMOTEIO}}) {
    std::atomic<int> answers = 0;
    const Error error = expect_error(
        [&](const ServedRequest&, std::uint64_t) {
          ++answers;
          return ServedAnswer{.status = one.status, .body = "no"};
        },
        std::to_string(one.status));
    EXPECT_EQ(error.system_errno, one.system_errno);
    EXPECT_EQ(answers, 1);
  }
}

TEST_F(HttpStorageTest, AWholeObjectInPlaceOfARangeIsCutOutWhereItsLengthIsSaid) {
  const Outcome outcome = read([](const ServedRequest&, std::uint64_t) {
    return ServedAnswer{.headers = {"ETag: " + kETag}, .body = kContent};
  });
  EXPECT_TRUE(outcome.text == wanted()) << outcome.error.message();
  expect_error(
      [](const ServedRequest&, std::uint64_t) {
        return ServedAnswer{.headers = {"ETag: " + kETag}, .body = kContent, .says_length = false};
      },
      "without its length");
  expect_recovery(
      [](const ServedRequest&) {
        return ServedAnswer{.headers = {"ETag: " + kETag}, .body = kContent, .breaks_after = 30'000};
      },
      "a whole that breaks off");
}

TEST_F(HttpStorageTest, ARangeUnderTheStatusOfAWholeIsARange) {
  const Outcome outcome = read([](const ServedRequest& request, std::uint64_t) {
    ServedAnswer answer = right(request);
    answer.status = 200;
    return answer;
  });
  EXPECT_TRUE(outcome.text == wanted()) << outcome.error.message();
}

TEST_F(HttpStorageTest, FewerBytesThanAskedForAreCompleted) {
  const Outcome outcome = read([](const ServedRequest& request, std::uint64_t) {
    ServedRequest less = request;
    const auto range = *request.range();
    less.headers["range"] =
        "bytes=" + std::to_string(range.first) + "-" + std::to_string(std::min(range.second, range.first + 19'999));
    return right(less);
  });
  EXPECT_TRUE(outcome.text == wanted()) << outcome.error.message();
  EXPECT_EQ(outcome.requests.size(), 3u);
}

TEST_F(HttpStorageTest, OtherBytesThanAskedForAreNeverData) {
  const auto with_range = [](const std::string& range) {
    return [range](const ServedRequest& request, std::uint64_t) {
      ServedAnswer answer = right(request);
      answer.headers = {"ETag: " + kETag, "Content-Range: " + range};
      return answer;
    };
  };
  expect_error(with_range("bytes 1001-51000/100000"), "a different range, 1001-51000");
  expect_error(with_range("bytes 0-49999/100000"), "a different range");
  expect_error(with_range("bytes 1000-51999/100000"), "a different range");
  expect_error(with_range("bytes 1000-50999"), "does not specify its byte range");
  expect_error(with_range("bytes */100000"), "does not specify its byte range");
  expect_error(with_range("bytes 1000-50999/100001"), "changed between index and read");
  expect_error(
      [](const ServedRequest& request, std::uint64_t) {
        ServedAnswer answer = right(request);
        answer.headers = {"ETag: " + kETag};
        return answer;
      },
      "does not specify its byte range");
  expect_error(
      [](const ServedRequest&, std::uint64_t) {
        return ServedAnswer{.status = 206,
                            .headers = {"ETag: " + kETag, "Content-Type: multipart/byteranges; boundary=x",
                                        "Content-Range: bytes 1000-50999/100000"},
                            .body = wanted()};
      },
      "does not specify its byte range");
}

// Acts like a proxy that computes the Content-Length of a truncated body.
TEST_F(HttpStorageTest, ALengthThatContradictsTheRangeIsTriedAgain) {
  const auto with_body = [](std::size_t bytes) {
    return [bytes](const ServedRequest& request, std::uint64_t) {
      ServedAnswer answer = right(request);
      answer.body.resize(bytes, 'x');
      return answer;
    };
  };
  for (const std::size_t bytes : {0ul, 1ul, 20'000ul, kBytes - 1, kBytes + 1, 2 * kBytes}) {
    const auto wrong = with_body(bytes);
    expect_recovery([&](const ServedRequest& request) { return wrong(request, 0); }, std::to_string(bytes));
    const std::string said = expect_error(wrong, "contradicts itself").what;
    EXPECT_NE(said.find("Content-Length is " + std::to_string(bytes)), std::string::npos) << said;
    EXPECT_NE(said.find("Content-Range is 1000-50999"), std::string::npos) << said;
    EXPECT_NE(said.find("tried 4 times"), std::string::npos) << said;
  }
  // the range is wrong, not the length
  expect_recovery(
      [](const ServedRequest& request) {
        ServedAnswer answer = right(request);
        answer.headers = {"ETag: " + kETag, "Content-Range: bytes 1000-50998/100000"};
        return answer;
      },
      "a range of one byte less");
  // after a truncated body, only the rest is read
  const Outcome outcome = read([&](const ServedRequest& request, std::uint64_t tries) {
    ServedAnswer answer = tries == 1 ? with_body(10)(request, tries) : right(request);
    if (tries == 0) answer.breaks_after = 30'000;
    return answer;
  });
  EXPECT_TRUE(outcome.text == wanted()) << outcome.error.message();
  ASSERT_EQ(outcome.requests.size(), 3u);
  EXPECT_EQ(outcome.requests[2].range()->first, kOffset + 30'000);
}

TEST_F(HttpStorageTest, EmptyAndWrongBodiesAreNeverData) {
  expect_error([](const ServedRequest&, std::uint64_t) { return ServedAnswer{.headers = {"ETag: " + kETag}}; },
               "changed between index and read");
  expect_error([](const ServedRequest&, std::uint64_t) { return ServedAnswer{.status = 204, .says_length = false}; },
               "204");
  expect_error([](const ServedRequest&, std::uint64_t) { return ServedAnswer{.raw = "garbage\r\n\r\nmore"}; },
               "tried 4");
  expect_error([](const ServedRequest&, std::uint64_t) { return ServedAnswer{.raw = "HTTP/1.1 206 x\r\nContent-Ra"}; },
               "tried 4");
}

TEST_F(HttpStorageTest, AnObjectThatChangedIsAnError) {
  const auto other = [](const ServedRequest& request, std::uint64_t) { return serve(request, kContent, "\"second\""); };
  EXPECT_NE(expect_error(other, "changed between index and read").what.find("412"), std::string::npos);
  const auto ignores = [](const ServedRequest& request, std::uint64_t) {
    ServedRequest without = request;
    without.headers.erase("if-match");
    return serve(without, kContent, "\"second\"");
  };
  expect_error(ignores, "changed between index and read");
  // in the middle of a body
  expect_error(
      [&](const ServedRequest& request, std::uint64_t tries) {
        ServedAnswer answer = tries == 0 ? right(request) : ignores(request, tries);
        answer.breaks_after = 10'000;
        return answer;
      },
      "changed between index and read");
}

TEST_F(HttpStorageTest, WithoutAnETagTheDateIsCompared) {
  const auto dated = [](const ServedRequest& request, const std::string& date) {
    ServedAnswer answer = right(request);
    answer.headers[0] = "Last-Modified: " + date;
    return answer;
  };
  HttpServer server([&](const ServedRequest& request) {
    return dated(request, request.number < 2 ? "Sun, 06 Nov 1994 08:49:37 GMT" : "Sun, 06 Nov 1994 08:49:38 GMT");
  });
  const HttpStorage storage(quick_limits());
  const auto reader = storage.open(server.url("/x"), Access::kRead);
  std::vector<std::byte> room(5000);
  EXPECT_TRUE((*reader)->read_at(10, room));
  const auto second = (*reader)->read_at(10, room);
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().what.find("changed between index and read"), std::string::npos);
  EXPECT_EQ(server.requests()[1].header("if-match"), "");
}

TEST_F(HttpStorageTest, AVersionIsReadOrAnError) {
  HttpServer server(right);
  const HttpStorage storage(quick_limits());
  const std::string url = server.url("/x");
  const Version version = *storage.stat(url);
  memory::ByteBuffer buffer;
  EXPECT_EQ(text_of(*storage.read_version(url, buffer, memory::kLeastSampleBytes, version)), kContent);
  Version other = version;
  other.tag ^= 1;
  std::vector<std::byte> room(10);
  EXPECT_FALSE(storage.read_version(url, buffer, memory::kLeastSampleBytes, other));
  EXPECT_FALSE((*storage.open_version(url, Access::kRead, other))->read_at(0, room));
}

TEST_F(HttpStorageTest, StallsEndAndTransfersThatMoveDoNot) {
  HttpLimits limits = quick_limits();
  limits.stall = 150ms;
  limits.least_bytes = 100;
  for (const std::size_t bytes : {0ul, 10'000ul})
    expect_recovery(
        [&](const ServedRequest& request) {
          ServedAnswer answer = right(request);
          answer.stalls_after = bytes;
          return answer;
        },
        "stall", limits);
  limits.tries = 2;
  expect_error(
      [](const ServedRequest& request, std::uint64_t) {
        ServedAnswer answer = right(request);
        answer.stalls_after = 0;
        return answer;
      },
      "stalled: ", limits);
}

TEST_F(HttpStorageTest, WhoIsNotThereIsAnErrorThatNamesIt) {
  HttpServer server(right);
  const HttpStorage storage(quick_limits());
  const auto refused = storage.open("http://127.0.0.1:1/x.tar?sig=word", Access::kRead);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message().find("127.0.0.1"), std::string::npos) << refused.error().message();
  EXPECT_NE(refused.error().what.find("tried 4 times"), std::string::npos);
  EXPECT_FALSE(storage.open("http://no-such-host.invalid/x.tar", Access::kRead));
}

TEST_F(HttpStorageTest, WholeObjectsAreWholeOrErrors) {
  const auto good = [](const ServedRequest& request, std::uint64_t) { return right(request); };
  EXPECT_TRUE(read_whole(good).text == kContent);
  EXPECT_TRUE(read_whole(good, kContent.size()).text == kContent);
  const Outcome large = read_whole(good, kContent.size() - 1);
  EXPECT_EQ(large.error.code, ErrorCode::kData) << large.error.message();
  const Outcome resumed = read_whole([](const ServedRequest& request, std::uint64_t tries) {
    ServedAnswer answer = right(request);
    if (tries == 0) answer.breaks_after = 40'000;
    return answer;
  });
  EXPECT_TRUE(resumed.text == kContent) << resumed.error.message();
  EXPECT_EQ(resumed.requests[1].range()->first, 40'000u);
  const auto chunked = [](const std::string& end) {
    return [end](const ServedRequest&, std::uint64_t) {
      return ServedAnswer{.raw = "HTTP/1.1 200 x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n" + end};
    };
  };
  EXPECT_EQ(read_whole(chunked("0\r\n\r\n")).text, "hello");
  EXPECT_EQ(read_whole(chunked("")).text, "(error)");
  EXPECT_EQ(read_whole(chunked("0\r\n\r\n"), 4).error.code, ErrorCode::kData);
  const auto without_length = [](const ServedRequest&, std::uint64_t) {
    return ServedAnswer{.raw = "HTTP/1.1 200 x\r\n\r\nhello"};
  };
  EXPECT_NE(read_whole(without_length).error.what.find("does not specify the object"), std::string::npos);
  const auto part = [](const ServedRequest&, std::uint64_t) {
    return ServedAnswer{.status = 206, .headers = {"Content-Range: bytes 0-4/9"}, .body = "hello"};
  };
  EXPECT_NE(read_whole(part).error.what.find("a part of the object"), std::string::npos);
}

TEST_F(HttpStorageTest, WhatCannotBeToldApartIsNotPutTogether) {
  const Outcome outcome = read_whole([](const ServedRequest& request, std::uint64_t tries) {
    ServedAnswer answer = serve(request, recognisable_bytes(1000 + tries), "x");
    answer.headers.erase(answer.headers.begin());
    if (tries == 0) answer.body = std::string(1001, 'o'), answer.breaks_after = 500;
    return answer;
  });
  EXPECT_TRUE(outcome.text == recognisable_bytes(1001)) << "from its beginning: " << outcome.error.message();
}

TEST_F(HttpStorageTest, RedirectsAreFollowedWithoutSecretsAndNotForEver) {
  HttpServer target(right);
  HttpServer server([&](const ServedRequest& request) {
    const std::string to = request.target == "/loop" ? "/loop" : target.url("/real");
    return ServedAnswer{.status = 302, .headers = {"Location: " + to}};
  });
  const HttpStorage storage(quick_limits());
  const auto url = [&](const std::string& path) {
    return open("http://me:word@localhost:" + server.host().substr(10) + path)->object;
  };
  EXPECT_EQ(url("/x").find("word"), std::string::npos);
  memory::ByteBuffer buffer;
  const auto got = storage.read_all(url("/x"), buffer, memory::kLeastSampleBytes);
  ASSERT_TRUE(got) << got.error().message();
  EXPECT_EQ(text_of(*got), kContent);
  EXPECT_TRUE(server.requests()[0].header("authorization").starts_with("Basic "));
  EXPECT_EQ(target.requests()[0].header("authorization"), "") << "another host";
  const auto looping = storage.read_all(url("/loop"), buffer, 100);
  ASSERT_FALSE(looping);
  EXPECT_EQ(looping.error().message().find("word"), std::string::npos) << looping.error().message();
  EXPECT_EQ(server.requests().size(), 7u) << "and no second try";
}

TEST_F(HttpStorageTest, ConnectionsAreUsedAgain) {
  auto client = Client::make(quick_limits());
  ASSERT_TRUE(client) << client.error().message();
  HttpServer server(right);
  const HttpStorage storage(quick_limits(), client->get());
  const auto reader = storage.open(server.url("/x"), Access::kRead);
  std::vector<std::byte> room(1000);
  for (int i = 0; i < 50; ++i) EXPECT_TRUE((*reader)->read_at(5000 + i, room));
  EXPECT_EQ((*client)->tally().counts().requests, 51u);
  EXPECT_EQ((*client)->tally().counts().connections, 1u);
}

// ---- many at once ----

TEST_F(HttpStorageTest, AQueueReadsManyAtOnceThroughFaults) {
  HttpServer server([](const ServedRequest& request) {
    ServedAnswer answer = right(request);
    if (request.number % 3 == 1) answer.breaks_after = request.number * 37 % 3000;
    if (request.number % 7 == 3) answer = ServedAnswer{.status = 503, .headers = {"Retry-After: 0"}};
    return answer;
  });
  HttpLimits limits = quick_limits();
  limits.tries = 30;
  limits.tries_in_all = 200;
  limits.at_once_per_host = 16;
  auto client = Client::make(limits);
  const auto storage = std::make_shared<HttpStorage>(limits, client->get());
  const std::shared_ptr<const Reader> reader =
      *storage->open_version(server.url("/x"), Access::kRead, *storage->stat(server.url("/x")));
  const auto queue = make_fetch_queue(storage, QueueKind::kBest);
  EXPECT_EQ(queue->name(), "http");
  std::vector<Fetch> fetches(200);
  for (std::size_t i = 0; i < fetches.size(); ++i) {
    if (i % 5 == 0)
      fetches[i].piece.path = server.url("/x");
    else
      fetches[i].piece = {reader, {}, i * 499, i % 50 == 1 ? 0u : 3000u};
    queue->start(fetches[i]);
  }
  for (std::size_t i = 0; i < fetches.size(); ++i) {
    const Fetch* const fetch = queue->finished(FetchQueue::Clock::now() + 200s);
    ASSERT_NE(fetch, nullptr);
    ASSERT_TRUE(fetch->bytes) << fetch->bytes.error().message();
    const std::string expected =
        fetch->piece.reader ? kContent.substr(fetch->piece.offset, fetch->piece.bytes) : kContent;
    EXPECT_TRUE(text_of(*fetch->bytes) == expected);
  }
}

TEST_F(HttpStorageTest, AQueueCancelsAndLeavesAndWhatWasUnderWayEnds) {
  HttpServer server([](const ServedRequest& request) {
    ServedAnswer answer = right(request);
    if (request.number > 0) answer.stalls_after = 100;
    return answer;
  });
  const auto storage = std::make_shared<HttpStorage>();  // whose stalls last longer than this test
  auto queue = make_fetch_queue(storage, QueueKind::kBest);
  std::vector<Fetch> fetches(20);
  for (Fetch& fetch : fetches) {
    fetch.piece.path = server.url("/x");
    fetch.most_bytes = memory::kLeastSampleBytes;
    queue->start(fetch);
  }
  for (std::size_t i = 0; i < 10; ++i) queue->cancel(fetches[i]);
  for (std::size_t i = 0; i < 10; ++i) {
    const Fetch* const fetch = queue->finished(FetchQueue::Clock::now() + 200s);
    ASSERT_NE(fetch, nullptr);
    if (!fetch->bytes) {
      EXPECT_EQ(fetch->bytes.error().code, ErrorCode::kCancelled);
    }
  }
  queue.reset();
  const auto longest = std::chrono::steady_clock::now() + 15s;  // less than a stall takes
  while (orphaned_buffers() > 0 && std::chrono::steady_clock::now() < longest) std::this_thread::yield();
  EXPECT_EQ(orphaned_buffers(), 0u);
}

#if !defined(__SANITIZE_THREAD__)  // whose child of several threads may start none
TEST_F(HttpStorageTest, AChildAfterForkReadsByItself) {
  HttpServer server(right);
  const HttpStorage storage;
  ASSERT_TRUE(storage.stat(server.url("/x")));  // the parent has a client
  const pid_t child = ::fork();
  if (child == 0) {
    memory::ByteBuffer buffer;
    const auto got = storage.read_all(server.url("/x"), buffer, memory::kLeastSampleBytes);
    ::_exit(got && text_of(*got) == kContent ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_TRUE(storage.stat(server.url("/x")));
}
#endif

TEST_F(HttpStorageTest, FoldersHaveNoListing) {
  HttpServer server([](const ServedRequest&) { return ServedAnswer{.status = 404}; });
  const HttpStorage storage(quick_limits());
  EXPECT_TRUE(*storage.is_directory("http://host/train/"));
  EXPECT_FALSE(*storage.is_directory("http://host/train.tar"));
  const auto listed = storage.list(server.url("/train/"));
  ASSERT_FALSE(listed);
  EXPECT_NE(listed.error().what.find("this folder has no feedline-listing.txt"), std::string::npos)
      << listed.error().what;
}

TEST(CurlLibrary, AnErrorSaysWhatToInstall) {
  for (const std::string file : {"/nowhere/libcurl.so.4", "libpthread.so.0"}) {
    const auto curl = open_curl(file);
    ASSERT_FALSE(curl) << file;
    EXPECT_EQ(curl.error().code, ErrorCode::kStorage);
    for (const char* part : {"apt-get install libcurl4", "FEEDLINE_LIBCURL", file.c_str()})
      EXPECT_NE(curl.error().what.find(part), std::string::npos) << curl.error().what;
  }
  EXPECT_TRUE(open_curl(""));
}

}  // namespace
}  // namespace feedline::storage
