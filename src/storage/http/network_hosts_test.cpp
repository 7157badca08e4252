// SPDX-License-Identifier: Apache-2.0
#include "feedline/network.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "storage/http/http_server_fixture.h"
#include "storage/http/remote_storage.h"
#include "storage/storage_contract.h"

namespace feedline {
namespace {

TEST(NetworkHosts, TellWhatWasAskedOfEachAndWhatCame) {
  const std::string content = storage::recognisable_bytes(400'000);
  storage::HttpServer server([&](const auto& request) { return storage::serve(request, content, "\"first\""); });
  storage::HttpServer other([&](const auto& request) { return storage::serve(request, content, "\"first\""); });
  const storage::HttpStorage http;
  const auto reader = http.open(server.url("/x.tar"), storage::Access::kRead);
  ASSERT_TRUE(reader.has_value());
  std::vector<std::byte> room(300'000);
  ASSERT_TRUE((*reader)->read_at(50'000, room).has_value());

  const auto hosts = network_hosts();
  const auto host = std::ranges::find(hosts, server.host(), &NetworkHost::name);
  ASSERT_NE(host, hosts.end());
  EXPECT_EQ(host->requests, server.requests().size());
  EXPECT_EQ(host->bytes, 4096u + 300'000u);
  EXPECT_GE(host->connections, 1u);
  EXPECT_GT(host->latency_s, 0);
  EXPECT_GT(host->bytes_per_s, 0);
  EXPECT_EQ(std::ranges::find(hosts, other.host(), &NetworkHost::name), hosts.end()) << "no request was sent to it";
}

}  // namespace
}  // namespace feedline
